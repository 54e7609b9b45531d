"""`agentctx bench omissions`: names that kept text lacks and the report doesn't say."""
