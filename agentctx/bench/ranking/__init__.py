"""`agentctx bench train-rank`: histories -> examples -> the ranking's model, and what it is worth."""
