"""`agentctx bench index`: how fast and how large the index is."""
