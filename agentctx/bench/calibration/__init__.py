"""`agentctx bench calibrate`: what a drafter sees in bug fixes -> weights of its heads, a probe, and their fusion with
the ranking."""
