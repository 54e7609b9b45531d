"""The formats of tools for all other languages. One line each, sorted."""

from __future__ import annotations

from agentctx.repo.logs.found import MakeFormat

OTHERS: tuple[MakeFormat, ...] = ()
