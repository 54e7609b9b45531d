"""What test a case of a JUnit report is: every tool writes `classname` and `name` in its own way. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentctx.repo.logs.bats import BatsFormat
from agentctx.repo.logs.callstacks import dotnet_frame, is_runtime, jvm_frame, php_frame, ruby_frame
from agentctx.repo.logs.cargo_test import rust_test
from agentctx.repo.logs.found import RawFrame, RawTest
from agentctx.repo.logs.go_trace import GoTraceFormat, raw_test
from agentctx.repo.logs.gtest import gtest_test
from agentctx.repo.logs.javascript import frame_of
from agentctx.repo.logs.jvm_names import jvm_test
from agentctx.repo.logs.rust_panic import RustPanicFormat

_PLACE = re.compile(
    r"^\s*(?:E\s+)?(?P<path>(?:[A-Za-z]:)?[^\s:()\"']+\.[A-Za-z]\w{0,4}):(?P<line>\d+)(?::\d+)?(?:$|[:\s])"
)
_NATIVE = re.compile(r'^\s*File "(?P<path>[^"]+)", line (?P<line>\d+), in (?P<name>.+)$')
_SECOND = re.compile(r"^(?:\t\S+\.go:\d+(?: \+0x[0-9a-f]+)?| {13}at \S+:\d+:\d+)$")
_GO_PLACE = re.compile(r"^\s*[\w.-]+\.go:\d+: (?P<text>.*)$")
_PANIC = re.compile(r"panicked at (?P<path>[^':\s]+):(?P<line>\d+):\d+:")
_GO_TEST = re.compile(r"^(?:Test|Fuzz|Benchmark|Example)(?:[A-Z_0-9/]|$)")
_DATA_SET = re.compile(r" with data set (?P<set>.*)$")
_PARAM = re.compile(r"^(?P<name>[^\[]+)\[(?P<param>.*)\]$", re.DOTALL)
MAX_SAID = 5  # lines of a failure
_C = (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".cu")


@dataclass(frozen=True, slots=True)
class Case:
    """A failed case: its attributes, those of the suites around it (outermost first), what it says."""

    at: int
    attributes: Mapping[str, str]
    suites: tuple[Mapping[str, str], ...]
    lines: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.attributes.get("name", "")

    @property
    def owner(self) -> str:
        return self.attributes.get("classname") or self.attributes.get("class", "")

    @property
    def path(self) -> str:
        """The file that the case or a suite names."""
        for level in (self.attributes, *reversed(self.suites)):
            for key in ("file", "filepath"):
                if level.get(key):
                    return level[key]
        return ""


def case_frames(case: Case) -> list[list[RawFrame]]:
    """Traces in the text, outermost frame first. Places that aren't of a stack are traces of their own."""
    if panics := _panics(case):
        return panics
    stack: list[RawFrame] = []
    places: list[RawFrame] = []
    python: list[RawFrame] = []
    for line in case.lines:
        frame = jvm_frame(line) or dotnet_frame(line) or ruby_frame(line) or php_frame(line) or frame_of(line)
        if frame is not None:
            stack += [frame] if frame.line and not is_runtime(frame.path) else []
        elif native := _NATIVE.match(line):
            python.append(RawFrame(native["path"], int(native["line"]), native["name"]))
        elif found := _PLACE.match(line) or _PANIC.search(line):
            frame = RawFrame(_in_package(found["path"], case), int(found["line"]))
            (python if frame.path.endswith(".py") else stack if frame.path.endswith(".php") else places).append(frame)
    traces = [stack[::-1], python, *([frame] for frame in places if not is_runtime(frame.path))]
    return [trace for trace in traces if trace][:50]


def _panics(case: Case) -> list[list[RawFrame]]:
    """The traces of Go and Rust, whose frames take two lines, and the places of bats."""
    parsers = (BatsFormat(), GoTraceFormat(), RustPanicFormat())
    for parser in parsers:
        for at, line in enumerate(case.lines):
            parser.feed(at, line)
    return [list(trace.frames) for parser in parsers for trace in parser.finish().traces]


def joined(lines: Sequence[str]) -> list[str]:
    """The lines, those of a frame of two lines as one."""
    out: list[str] = []
    for line in lines:
        if _SECOND.match(line) and out and "\n" not in out[-1] and not out[-1].startswith("\t"):
            out[-1] += f"\n{line}"
        else:
            out.append(line)
    return out


def said(text: str, case: Case) -> list[str]:
    """The first lines that say something: no places, no frames, not the test's name."""
    out: list[str] = []
    for line in text.split("\n"):
        if line.lstrip().startswith(("=== RUN", "--- FAIL", "=== CONT")):
            continue
        if place := _GO_PLACE.match(line):
            line = place["text"]
        blank = not line.strip() or line.startswith((case.name, f"{case.owner}::{case.name}")) or line == "unknown file"
        if _PLACE.match(line) and line.strip().endswith(tuple("0123456789")):
            blank = True
        if blank or jvm_frame(line) or frame_of(line):
            continue
        if len(out) >= MAX_SAID:
            break
        out.append(line)
    return out


def _in_package(path: str, case: Case) -> str:
    """Go names a file without its folder; the class name is the package's."""
    return f"{case.owner}/{path}" if path.endswith(".go") and "/" not in path and case.owner else path


def case_test(case: Case) -> RawTest:
    """The test, from what tells its language: the file, frames, the names' shape."""
    frames = [frame for trace in case_frames(case) for frame in trace]
    paths = [path for path in (case.path, *(frame.path for frame in frames)) if path]
    first = paths[0] if paths else ""
    if any(path.endswith(".go") for path in paths) or (
        _GO_TEST.match(case.name) and "." not in case.owner.split("/")[-1]
    ):
        return raw_test(case.at, case.name, next((path for path in paths if path.endswith("_test.go")), ""))
    if "::" in case.name or first.endswith(".rs"):
        return rust_test(case.at, "", case.name, frames)
    if first.endswith(".py") or any(suite.get("name") == "pytest" for suite in case.suites):
        return _python(case)
    if first.endswith(_C):
        test = gtest_test(case.at, f"{case.owner.rpartition('.')[2]}.{case.name}")
        return RawTest(case.at, first, test.names, test.param)
    if first.endswith(".php"):
        found = _DATA_SET.search(case.name)
        name = case.name[: found.start()] if found else case.name
        return RawTest(case.at, first, (case.owner.rpartition("\\")[2], name), found["set"] if found else None)
    return _other(case, first, frames)


def _python(case: Case) -> RawTest:
    """pytest's `tests.test_calc.TestX` and `test_in[param]`."""
    parts = case.owner.split(".") if case.owner else []
    n_module = next((i for i, part in enumerate(parts) if part[:1].isupper()), len(parts))
    path = case.path or ("/".join(parts[:n_module]) + ".py" if parts else "")
    found = _PARAM.match(case.name)
    names = (*parts[n_module:], found["name"] if found else case.name)
    return RawTest(case.at, path, names, found["param"] if found else None)


def _other(case: Case, first: str, frames: list[RawFrame]) -> RawTest:
    last = case.owner.split("$")[0].rpartition(".")[2]
    of_jvm = any(frame.path.endswith((".java", ".kt", ".scala", ".groovy")) for frame in frames)
    if of_jvm or (not first and last[:1].isupper() and " " not in case.owner):
        return jvm_test(case.at, case.owner, case.name, frames)
    if first.endswith(".cs"):
        return RawTest(case.at, first, (last, re.split(r"[(]", case.name.rpartition(".")[2] or case.name)[0]))
    return RawTest(case.at, case.path or first, (case.name,))
