"""dotnet test with xUnit, NUnit or MSTest, and NUnit's own console. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.callstacks import dotnet_frame
from agentctx.repo.logs.found import Found, RawFrame, RawTest
from agentctx.repo.logs.section import Section

_FAILED = re.compile(
    r"^(?:  (?:Failed|X|!) |failed |\d+\) (?:Failed|Error|Invalid) : )"
    r"(?P<name>[A-Za-z_][\w.+`<>]*\.[^\n]*?|\w+(?:\(.*\))?)"
    r"(?: [\[(](?:< ?)?\d[\w ,.]*[\])])?$"
)
_XUNIT = re.compile(r"^\[xUnit\.net [\d:.]+\]\s+(?P<name>[A-Za-z_][\w.+`<>]*\.\S.*?) \[FAIL\]$")
_NEXT = re.compile(
    r"^(?:  (?:Passed|Skipped|Failed|X|V|!) \S|passed |skipped |\[xUnit\.net|\d+\) |(?:Failed|Passed)!  "
    r"|Test Run |Total tests:"
    r"|Results File: |Attachments:|Run Settings|Test run summary:|Build succeeded|  +Standard Output Messages:)"
)
_HEAD = re.compile(r"^\s*(?:Error Message|Stack Trace|Standard Output Messages|Standard Error Messages):\s*$")
MAX_ERRORS = 8
MAX_LINES = 400


class DotnetTestFormat:
    """`Failed Ns.Class.Test [12 ms]`, then `Error Message:` and `Stack Trace:`."""

    wakes: ClassVar[tuple[str, ...]] = ("Failed ", "  X ", "failed ", "[FAIL]", ") Error : ", ") Invalid : ")

    def __init__(self) -> None:
        self._found = Found()
        self._section: Section | None = None
        self._name = ""
        self._frames: list[RawFrame] = []  # of the trace that is read, innermost first
        self._outer: list[RawFrame] = []  # of the trace before an inner one
        self._any = False  # whether something tells that the section is a failure
        self._errors: list[tuple[int, str]] = []
        self._announced: dict[str, int] = {}  # by xUnit while it runs

    @property
    def busy(self) -> bool:
        return self._section is not None

    def feed(self, at: int, line: str) -> None:
        if failed := _FAILED.match(line):
            self._close()
            self._section, self._name = Section(at), failed["name"]
            self._any = line.endswith(("]", ")")) and line.startswith(("  ", "failed"))
        elif xunit := _XUNIT.match(line):
            self._close()
            if len(self._announced) < 5_000:
                self._announced.setdefault(xunit["name"], at)
        elif self._section is not None:
            if _NEXT.match(line) or at - self._section.at > MAX_LINES:
                self._close()
            else:
                self._inside(at, line, self._section)

    def finish(self) -> Found:
        self._close()
        known = {test.names for test in self._found.tests}
        for name, at in self._announced.items():
            test = _test(at, name, [])
            if test.names not in known:
                self._found.add_test(test)
        return self._found

    def _inside(self, at: int, line: str, section: Section) -> None:
        if _HEAD.match(line):
            self._any = True
        elif frame := dotnet_frame(line):
            self._any = True
            if frame.line:
                self._frames.append(frame)
        elif "Inner Stack Trace" in line:
            section.trace(self._found, section.at, self._frames)
            self._outer, self._frames = self._frames, []
        elif line.strip() and not self._frames and len(self._errors) < MAX_ERRORS:
            self._errors.append((at, line))
        section.add(at, line)

    def _close(self) -> None:
        section, self._section = self._section, None
        frames, self._frames = self._frames, []
        outer, self._outer = self._outer, []
        errors, self._errors = self._errors, []
        if section is None or not self._any:
            return
        section.trace(self._found, section.at, frames)
        for error in errors:
            self._found.add_error(*error)
        test = _test(section.at, self._name, [*frames, *outer])
        self._found.add_test(test)
        self._found.add_block(section.block(test, "FAILED"))


def _test(at: int, name: str, frames: list[RawFrame]) -> RawTest:
    """`Shop.Tests.CartTests+Nested.Adds(a: 1)`: method Adds of Nested in CartTests, with `a: 1`."""
    full, _, rest = name.partition("(")
    owner, _, method = re.sub(r"<[^>]*>", "", full).rpartition(".")
    classes = owner.rpartition(".")[2].split("+") if owner else []
    own = (frame.path for frame in reversed(frames) if frame.function == method)
    path = next(own, frames[-1].path if frames else "")
    return RawTest(at, path, (*classes, method), rest.removesuffix(")") if rest else None)
