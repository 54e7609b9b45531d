"""go test: its text, -v and -json, subtests, testify, panics, timeouts, races, build failures. Pure.

`go test` names only the base name of a file: the package stands in the line after its tests. So what a package's
tests wrote is kept until that line comes.
"""

from __future__ import annotations

import json
import re
from typing import ClassVar

from agentctx.repo.logs.found import Found, LogFormat, RawFrame
from agentctx.repo.logs.go_build import GoBuildFormat
from agentctx.repo.logs.go_trace import GoTraceFormat, raw_test
from agentctx.repo.logs.section import Section

_FAIL = re.compile(r"^(?P<indent> *)--- (?P<verdict>FAIL|PASS|SKIP|BENCH): (?P<name>\S+)(?: \([\d.]+ ?s\))?$")
_RUN = re.compile(r"^=== (?P<what>RUN|CONT|NAME|PAUSE) +(?P<name>\S+)$")
_PACKAGE = re.compile(r"^(?P<verdict>FAIL|ok  |---)?\t(?P<package>[\w./~@+-]+)(?:\t.*| \[.*\])?$")
_PLACE = re.compile(r"^(?P<indent> +)(?P<file>[\w.@+-]+\.go):(?P<line>\d+): ?(?P<text>.*)$")
_TRACE = re.compile(r"^\s*Error Trace:\s+(?P<path>\S.*?):(?P<line>\d+)$")
_MORE_TRACE = re.compile(r"^\s+(?P<path>(?:[A-Za-z]:)?[^\s:]+\.go):(?P<line>\d+)$")
_TESTIFY = re.compile(r"^\s*(?:Error|Messages):\s*(?P<text>\S.*)$")
_COMPARED = re.compile(r"^\s*(?P<text>(?:expected|actual|got|want|Expected|Actual)\s*:.*)$")
_SUMMED = re.compile(r"^=== (?:FAIL|Failed): (?P<package>\S+) (?P<name>\S+) \([\d.]+s\)$")  # gotestsum
MAX_PENDING = 5_000  # tests of one package
MAX_SAID = 6  # lines that go on with a message
MAX_QUIET = 3_000  # lines without a sign of go test: then it has ended


class _Test:
    """What a test has written so far."""

    __slots__ = ("errors", "failed", "more", "places", "section")

    def __init__(self, at: int) -> None:
        self.section = Section(at)
        self.places: list[RawFrame] = []
        self.errors: list[tuple[int, str]] = []
        self.more: tuple[int, int] = (0, 0)  # how many lines may go on with a message, and how far they are indented
        self.failed = False


class GoTestFormat:
    """One package after the other; with -json every package has a reader of its own."""

    wakes: ClassVar[tuple[str, ...]] = (
        *("--- FAIL: ", "=== RUN ", "=== FAIL: ", '"Action":"', "FAIL\t"),
        *("panic: ", "fatal error: ", "DATA RACE"),
    )

    def __init__(self) -> None:
        self._found = Found()
        self._packages: dict[str, _Package] = {"": _Package()}
        self._quiet = 0
        self._summed_package = ""
        self._summed_parents: set[tuple[str, str]] = set()  # their subtests come first

    @property
    def busy(self) -> bool:
        return self._packages[""].open

    def feed(self, at: int, line: str) -> None:
        if line.startswith("{") and '"Action":"' in line:
            return self._event(at, line)
        package = self._packages[""]
        if summed := _SUMMED.match(line):
            return self._summed(at, summed)
        end = _PACKAGE.match(line) if "\t" in line else None
        if end and end["verdict"] != "---":
            package.close(self._found, end["package"], at)
            self._packages[""] = _Package()
        elif package.feed(at, line):
            self._quiet = 0
        elif package.open:
            self._quiet += 1
            if self._quiet > MAX_QUIET:
                package.close(self._found, "", at)
                self._packages[""] = _Package()

    def finish(self) -> Found:
        for name, package in self._packages.items():
            package.close(self._found, name or self._summed_package, None)
        return self._found

    def _summed(self, at: int, summed: re.Match[str]) -> None:
        """gotestsum names the package above each failure, relative to the module."""
        name = "" if summed["package"] == "." else summed["package"]
        self._packages[""].close(self._found, self._summed_package, at)
        self._summed_package = name
        self._packages[""] = _Package()
        if (name, summed["name"]) not in self._summed_parents:
            self._packages[""].begin(at, summed["name"])
        self._summed_parents |= {(name, summed["name"][:cut]) for cut in _slashes(summed["name"])}

    def _event(self, at: int, line: str) -> None:
        """`{"Action":"output","Package":"x","Test":"TestA","Output":"text"}`; a long output comes in several events."""
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(event, dict) or not isinstance(event.get("Action"), str):
            return
        name, test, output = (str(event.get(key) or "") for key in ("Package", "Test", "Output"))
        package = self._packages.setdefault(name, _Package())
        if event["Action"] in ("output", "build-output"):
            package.output(at, test, output)
        elif event["Action"] == "fail" and test:
            package.failed(at, test)
        elif event["Action"] in ("fail", "pass", "skip") and not test:
            self._packages.pop(name).close(self._found, name, at)
            self._packages.setdefault("", _Package())


class _Package:
    """The tests of one package, until it is known which package it is."""

    def __init__(self) -> None:
        self._tests: dict[str, _Test] = {}
        self._current = ""  # whose lines come: after `=== RUN` with -v, after `--- FAIL` without
        self._partial: dict[str, str] = {}  # output without a line end, by test
        self._traces = GoTraceFormat()  # they tell where a test lies that panicked
        self._others: list[LogFormat] = []  # what else events may hold

    @property
    def open(self) -> bool:
        return bool(self._tests) or self._traces.busy

    def begin(self, at: int, name: str) -> None:
        """The lines that come are of a test that failed."""
        self._current = name
        self._test(at, name).failed = True

    def feed(self, at: int, line: str) -> bool:
        """Take a line of text; False for one that isn't of go test and belongs to no test."""
        self._traces.feed(at, line)
        if verdict := _FAIL.match(line):
            self._verdict(at, verdict)
        elif run := _RUN.match(line):
            self._current = run["name"]
            self._test(at, run["name"])
        elif self._traces.busy or line.startswith(("FAIL", "PASS", "exit status ", "=== ", "DONE ")):
            self._current = ""
        elif self._current:
            self._inside(at, line, self._test(at, self._current))
        else:
            return False
        return True

    def output(self, at: int, test: str, text: str) -> None:
        """Take an event's output."""
        text = self._partial.pop(test, "") + text
        if not text.endswith("\n"):
            self._partial[test] = text[-4_000:]
            return
        line = text[:-1]
        if not self._others:
            self._others = [GoBuildFormat()]
        for other in (self._traces, *self._others):
            other.feed(at, line)
        if test and not self._traces.busy and not _RUN.match(line) and not _FAIL.match(line):
            self._inside(at, line, self._test(at, test))

    def failed(self, at: int, test: str) -> None:
        self._test(at, test).failed = True

    def close(self, found: Found, package: str, at: int | None) -> None:
        """Give the failing tests to `found`; one whose subtests failed is told by them."""
        traced = self._traces.finish()
        functions = {f.function: f.path for trace in traced.traces for f in trace.frames if f.path.endswith("_test.go")}
        failed = [name for name, test in self._tests.items() if test.failed]
        parents = {name[:cut] for name in failed for cut in _slashes(name)}
        for name in failed:
            test = self._tests[name]
            if name not in parents or test.places:
                self._give(found, package, name, test, functions.get(name.partition("/")[0], ""))
        if self._others:  # the lines of events reach no other format
            for more in (traced, *(other.finish() for other in self._others)):
                _take(found, more)
        self._tests = {}

    def _give(self, found: Found, package: str, name: str, test: _Test, traced: str) -> None:
        frames = [frame if "/" in frame.path else _located(frame, package) for frame in test.places]
        for frame in frames:
            found.add_trace(test.section.at, [frame])
        for error in test.errors:
            found.add_error(*error)
        test.section.frames = frames[:50]
        path = traced or next((frame.path for frame in frames if frame.path.endswith("_test.go")), "")
        raw = raw_test(test.section.at, name, path)
        found.add_test(raw)
        if test.section.lines:
            found.add_block(test.section.block(raw, "FAILED"))

    def _test(self, at: int, name: str) -> _Test:
        if name not in self._tests and len(self._tests) >= MAX_PENDING:
            self._tests = {known: test for known, test in self._tests.items() if test.failed}
            if len(self._tests) >= MAX_PENDING:
                return _Test(at)
        return self._tests.setdefault(name, _Test(at))

    def _verdict(self, at: int, verdict: re.Match[str]) -> None:
        self._current = verdict["name"]
        if verdict["verdict"] != "FAIL":
            self._tests.pop(verdict["name"], None)
            self._current = ""
            return
        test = self._test(at, verdict["name"])
        test.failed = True
        test.section.end = max(test.section.end, at)

    def _inside(self, at: int, line: str, test: _Test) -> None:
        left, indent = test.more
        test.more = (0, 0)
        if place := _PLACE.match(line):
            if place["file"] != "testing.go":
                test.places.append(RawFrame(place["file"], int(place["line"])))
            self._error(at, place["text"], test)
            test.more = (MAX_SAID if place["text"] else 0, len(place["indent"]) + 4)
        elif (trace := _TRACE.match(line)) or (test.places and (trace := _MORE_TRACE.match(line))):
            _more_exact(test.places, RawFrame(trace["path"], int(trace["line"])))
        elif (said := _TESTIFY.match(line)) or (said := _COMPARED.match(line)):
            self._error(at, said["text"], test)
        elif left and line.startswith(" " * indent):
            self._error(at, line, test)
            test.more = (left - 1, indent)
        del test.places[100:]
        test.section.add(at, line)

    def _error(self, at: int, text: str, test: _Test) -> None:
        if text.strip() and len(test.errors) < 100:
            test.errors.append((at, text))


def _more_exact(places: list[RawFrame], frame: RawFrame) -> None:
    """testify writes the whole path of the place that go test named above."""
    if places and places[-1] == RawFrame(frame.path.rpartition("/")[2], frame.line):
        places[-1] = frame
    else:
        places.append(frame)


def _take(found: Found, more: Found) -> None:
    for trace in more.traces:
        found.add_trace(trace.at, list(trace.frames))
    for text, at in more.errors.items():
        found.add_error(at, text)
    for block in more.blocks:
        found.add_block(block)


def _located(frame: RawFrame, package: str) -> RawFrame:
    package = package.removesuffix(".test").removesuffix("_test")
    return RawFrame(f"{package}/{frame.path}", frame.line) if package else frame


def _slashes(name: str) -> list[int]:
    return [i for i, char in enumerate(name) if char == "/"]
