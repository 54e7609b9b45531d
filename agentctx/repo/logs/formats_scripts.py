"""The formats of tools for Python and JavaScript, and of what any tool may write. One line each, sorted."""

from __future__ import annotations

from agentctx.repo.logs.found import MakeFormat
from agentctx.repo.logs.pytest import PytestFormat
from agentctx.repo.logs.traceback import TracebackFormat

SCRIPTS: tuple[MakeFormat, ...] = (
    PytestFormat,
    TracebackFormat,
)
