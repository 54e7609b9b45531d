"""The formats of tools for Python and JavaScript, and of what any tool may write. One line each, sorted."""

from __future__ import annotations

from agentctx.repo.logs.annotations import AnnotationFormat
from agentctx.repo.logs.bundlers import BundlerFormat
from agentctx.repo.logs.diagnostics import DiagnosticsFormat, RuffFormat
from agentctx.repo.logs.found import MakeFormat
from agentctx.repo.logs.jest import JestFormat
from agentctx.repo.logs.mocha import JasmineFormat, MochaFormat
from agentctx.repo.logs.node_spec import AvaFormat, NodeSpecFormat
from agentctx.repo.logs.pytest import PytestFormat
from agentctx.repo.logs.stack import StackFormat
from agentctx.repo.logs.tap import TapFormat
from agentctx.repo.logs.traceback import TracebackFormat
from agentctx.repo.logs.unittest import DoctestFormat, UnittestFormat
from agentctx.repo.logs.vitest import VitestFormat

SCRIPTS: tuple[MakeFormat, ...] = (
    AnnotationFormat,
    AvaFormat,
    BundlerFormat,
    DiagnosticsFormat,
    DoctestFormat,
    JasmineFormat,
    JestFormat,
    MochaFormat,
    NodeSpecFormat,
    PytestFormat,
    RuffFormat,
    StackFormat,
    TapFormat,
    TracebackFormat,
    UnittestFormat,
    VitestFormat,
)
