"""`agentctx bench fuzz`: what must hold for every file and log, however broken."""
