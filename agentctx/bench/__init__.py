"""What `agentctx bench` measures and trains. Never imported by the product itself."""
