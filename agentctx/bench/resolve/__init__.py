"""`agentctx bench resolve`: our resolved references beside an oracle's."""
