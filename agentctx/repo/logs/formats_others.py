"""The formats of tools for all other languages. One line each, sorted."""

from __future__ import annotations

from agentctx.repo.logs.bats import BatsFormat
from agentctx.repo.logs.c_compilers import AssertFormat, CCompilerFormat, CMakeFormat
from agentctx.repo.logs.cargo_test import CargoTestFormat
from agentctx.repo.logs.catch import CatchFormat
from agentctx.repo.logs.ctest import CtestFormat
from agentctx.repo.logs.dotnet_test import DotnetTestFormat
from agentctx.repo.logs.found import MakeFormat
from agentctx.repo.logs.go_build import GoBuildFormat
from agentctx.repo.logs.go_test import GoTestFormat
from agentctx.repo.logs.go_trace import GoTraceFormat
from agentctx.repo.logs.gtest import GtestFormat
from agentctx.repo.logs.junit_text import GradleFormat, JUnitConsoleFormat, JUnitRunnerFormat, ScalaTestFormat
from agentctx.repo.logs.junit_xml import JUnitXmlFormat
from agentctx.repo.logs.jvm_compilers import JvmCompilerFormat
from agentctx.repo.logs.phpunit import PhpunitFormat, TeamcityFormat
from agentctx.repo.logs.ruby_tests import MinitestFormat, RspecFormat
from agentctx.repo.logs.rust_panic import RustPanicFormat
from agentctx.repo.logs.rustc import RustcFormat
from agentctx.repo.logs.stacks import DotnetStack, JvmStack, NativeStack, PhpTrace, RubyTrace
from agentctx.repo.logs.surefire import SurefireFormat

OTHERS: tuple[MakeFormat, ...] = (
    AssertFormat,
    BatsFormat,
    CCompilerFormat,
    CMakeFormat,
    CargoTestFormat,
    CatchFormat,
    CtestFormat,
    DotnetStack,
    DotnetTestFormat,
    GoBuildFormat,
    GoTestFormat,
    GoTraceFormat,
    GradleFormat,
    GtestFormat,
    JUnitConsoleFormat,
    JUnitRunnerFormat,
    JUnitXmlFormat,
    JvmCompilerFormat,
    JvmStack,
    MinitestFormat,
    NativeStack,
    PhpTrace,
    PhpunitFormat,
    RspecFormat,
    RubyTrace,
    RustPanicFormat,
    RustcFormat,
    ScalaTestFormat,
    SurefireFormat,
    TeamcityFormat,
)
