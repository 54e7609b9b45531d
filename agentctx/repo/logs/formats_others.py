"""The formats of tools for all other languages. One line each, sorted."""

from __future__ import annotations

from agentctx.repo.logs.cargo_test import CargoTestFormat
from agentctx.repo.logs.found import MakeFormat
from agentctx.repo.logs.go_build import GoBuildFormat
from agentctx.repo.logs.go_test import GoTestFormat
from agentctx.repo.logs.go_trace import GoTraceFormat
from agentctx.repo.logs.rust_panic import RustPanicFormat
from agentctx.repo.logs.rustc import RustcFormat
from agentctx.repo.logs.stacks import DotnetStack, JvmStack, NativeStack, PhpTrace, RubyTrace

OTHERS: tuple[MakeFormat, ...] = (
    CargoTestFormat,
    DotnetStack,
    GoBuildFormat,
    GoTestFormat,
    GoTraceFormat,
    JvmStack,
    NativeStack,
    PhpTrace,
    RubyTrace,
    RustPanicFormat,
    RustcFormat,
)
