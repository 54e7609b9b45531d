"""`agentctx bench whole`: whether selections keep whole what they keep."""
