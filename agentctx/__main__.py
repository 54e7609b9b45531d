"""`python -m agentctx`."""

from agentctx.cli.main import run

run()
