"""`agentctx bench replay` and `fidelity`: bug fixes of public histories, packed and selected as the product does it."""
