"""`agentctx bench ttft`, `decode` and `qps`: seconds with selection beside seconds without it."""
