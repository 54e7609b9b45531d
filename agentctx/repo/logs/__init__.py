"""Logs -> Evidence: one file per format. Pure."""

from agentctx.repo.logs.reader import read_logs

__all__ = ["read_logs"]
