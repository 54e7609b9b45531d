"""pytest's output in every traceback style, quiet, verbose or from xdist, whole or cut. Pure."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import ClassVar

from agentctx.repo.logs.found import Block, Found, RawFrame, RawTest
from agentctx.repo.logs.nodeid import parse_node_id, parse_title

_SECTION = re.compile(
    r"^=+ (FAILURES|ERRORS|short test summary info|PASSES|XPASSES|XFAILURES|warnings summary.*|test session starts"
    r"|slowest .*|\d+ (?:failed|passed|errors?|skipped|deselected|xfailed|xpassed|warnings?)\b.*|no tests ran.*"
    r"|tests coverage) =+$"
)
_QUIET_END = re.compile(r"^\d+ (?:failed|passed|errors?|skipped|deselected|xfailed|xpassed|warnings?)\b.* in [\d.]+s")
_BANG = re.compile(r"^!{3,} .+ !{3,}$")
_TITLE = re.compile(r"^_+ (?!_)(.*[^_ ].*?) _+$")
_RULE = re.compile(r"^(?:_ ){3,}_?$")
_CAPTURED = re.compile(r"^-+ Captured .+ -+$")
_ERROR = re.compile(r"^E(?:\s{2,}(.*)|\s*)$")
_FRAME_IN_ERROR = re.compile(r'^\s*File "([^"]+)", line (\d+)')
_NATIVE = re.compile(r'^[\s|]*File "([^"]+)", line (\d+), in (.+?)\s*$')  # traced by the traceback format
_LOCATION = re.compile(r"^((?:[A-Za-z]:)?[^\s:][^:\n]*):(\d+):(?: (in .+|[A-Za-z_][\w.]*(?:: .*)?))?\s*$")
_DEF = re.compile(r"^[> ]\s+(?:async )?def (\w+)")
_CHAIN = re.compile(r"^(?:The above exception was the direct cause|During handling of the above exception)")
_SUMMARY = re.compile(r"^(?:(?:\[[^\]]*\] )?(?:\([^)]*\) )?SUBFAIL(?:ED)?(?:\[.*?\]|\(.*?\))*|FAILED|ERROR) (\S.*)$")
_VERBOSE = re.compile(
    r"^(?:\[gw\d+\] \[\s*\d+%\] (?:FAILED|ERROR) (.+?)|(\S.*?\.\w+::.+?) (?:FAILED|ERROR)(?:\s+\[\s*\d+%\])?)\s*$"
)
_USAGE = re.compile(r"^ERROR: (?:file or directory )?not found: (\S.*)$")
_WORKER = re.compile(r"^\[gw\d+\] \S+ -- Python ")
MAX_LINES = 600  # of one failure
MAX_CAPTURED = 30  # lines of one captured stream


@dataclass(slots=True)
class _Failure:
    """A failure that is being read."""

    at: int
    title: str
    lines: list[str] = field(default_factory=list)
    frames: list[RawFrame] = field(default_factory=list)  # of all its tracebacks
    trace: list[RawFrame] = field(default_factory=list)  # of the current one
    function: str | None = None  # of the entry that is being read (long style names it in the source only)
    path: str | None = None  # of that entry, where it opens with its location (short style)
    source: list[str] = field(default_factory=list)  # what the entry quotes, where its location comes last
    captured: deque[str] | None = None  # the end of a captured stream


class PytestFormat:
    """A small state machine: section, then failure, then entry."""

    wakes: ClassVar[tuple[str, ...]] = ("===", "!!!", "___", "_ _ _ ", "E   ", ".py:", "FAILED", "ERROR", "SUBFAIL")

    def __init__(self) -> None:
        self._found = Found()
        self._section = ""
        self._failure: _Failure | None = None
        self._titled: list[RawTest] = []  # tests named above failures, with the path of their first frame
        self._listed: list[tuple[int, str]] = []  # the summary's node ids with their messages
        self._verbose: list[tuple[int, str]] = []

    @property
    def busy(self) -> bool:
        return self._section in ("FAILURES", "ERRORS")

    def feed(self, at: int, line: str) -> None:
        if line.startswith(("=", "!")) and self._new_section(at, line):
            return
        if self._section in ("FAILURES", "ERRORS"):
            self._in_failures(at, line)
        elif line.startswith(("FAILED ", "ERROR ", "SUBFAIL", "[", "(")) and (found := _SUMMARY.match(line)):
            if self._section == "short test summary info" or ".py::" in line:
                self._listed.append((at, found[1]))
        elif line.startswith("ERROR: ") and (found := _USAGE.match(line)):
            self._found.add_error(at, line)
            self._found.add_block(Block(at, at, (line,)))
            self._verbose.append((at, found[1]))
        elif "::" in line and ("FAILED" in line or "ERROR" in line):
            self._verbose_line(at, line)
        elif self._section == "" and _inside_failures(line):
            # The log starts there.
            self._section = "FAILURES"
            self._in_failures(at, line)

    def finish(self) -> Found:
        self._close(None)
        titles = {(test.names, test.param) for test in self._titled}
        verbose = [parse_node_id(at, text, titles) for at, text in self._verbose]
        titles |= {(test.names, test.param) for test in verbose if test is not None}
        listed = [parse_node_id(at, text, titles) for at, text in self._listed]
        tests = [test for test in (*listed, *verbose) if test is not None]
        known = {_key(test) for test in tests}
        tests += [test for test in self._titled if _key(test) not in known]
        for test in tests:
            self._found.add_test(test)
        return self._found

    def _new_section(self, at: int, line: str) -> bool:
        found = _SECTION.match(line)
        if found is None and not _BANG.match(line):
            return False
        self._close(at)
        self._section = found[1] if found else "end"
        return True

    def _verbose_line(self, at: int, line: str) -> None:
        if found := _VERBOSE.match(line):
            self._verbose.append((at, found[1] or found[2]))

    def _in_failures(self, at: int, line: str) -> None:
        if line.startswith("_") and (title := _TITLE.match(line)):
            self._close(at)
            self._failure = _Failure(at, title[1])
        elif _QUIET_END.match(line):
            self._close(at)
            self._section = "end"
        elif self._failure is None:
            self._untitled(at, line)
        else:
            self._in_failure(at, line, self._failure)

    def _untitled(self, at: int, line: str) -> None:
        """`--tb=line` prints one location per failure and no titles; a cut log starts anywhere."""
        found = _LOCATION.match(line)
        if found and ": " in (found[3] or ""):
            frame = RawFrame(found[1], int(found[2]))
            self._found.add_trace(at, [frame])
            self._found.add_error(at, found[3])
            self._found.add_block(Block(at, at, (line,), (frame,)))
        elif line.strip():
            self._failure = _Failure(at, "")
            self._in_failure(at, line, self._failure)

    def _in_failure(self, at: int, line: str, failure: _Failure) -> None:
        if line.startswith("-") and _CAPTURED.match(line):
            _flush(failure)
            failure.lines.append(line.strip("- ") + ":")
            failure.captured = deque(maxlen=MAX_CAPTURED)
        elif failure.captured is not None:
            if line.strip():
                failure.captured.append(line)
        elif _RULE.match(line):
            _end_entry(failure)
            _keep(failure, "")
        elif _CHAIN.match(line):
            self._close_trace(at, failure)
            _keep(failure, line)
        elif line.startswith("E") and (error := _ERROR.match(line)):
            self._error(at, error[1] or "", line, failure)
        elif found := _LOCATION.match(line):
            self._location(found, line, failure)
        elif line.strip() and not _WORKER.match(line):
            if frame := _NATIVE.match(line):
                failure.frames.append(RawFrame(frame[1], int(frame[2]), frame[3]))
            self._source(line, failure)

    def _error(self, at: int, text: str, line: str, failure: _Failure) -> None:
        self._found.add_error(at, text)
        if text:
            _keep(failure, line)
        if frame := _FRAME_IN_ERROR.match(text):  # a syntax error of the test file
            failure.trace.append(RawFrame(frame[1], int(frame[2])))

    def _location(self, found: re.Match[str], line: str, failure: _Failure) -> None:
        tail = found[3] or ""
        opens = tail.startswith("in ")
        function = tail.removeprefix("in ") if opens else failure.function
        failure.trace.append(RawFrame(found[1], int(found[2]), function))
        for quoted in failure.source:
            self._found.add_quoted(found[1], quoted)
        _end_entry(failure)
        failure.path = found[1] if opens else None
        _keep(failure, line.rstrip())

    def _source(self, line: str, failure: _Failure) -> None:
        if failure.function is None and (found := _DEF.match(line)):
            failure.function = found[1]
        if failure.path is not None and line.startswith(" "):
            self._found.add_quoted(failure.path, line)
        elif line.startswith((">", "    ")) and "|" not in line[:9]:
            failure.source.append(line.lstrip(">"))
        _keep(failure, line)

    def _close_trace(self, at: int, failure: _Failure) -> None:
        self._found.add_trace(at, failure.trace)
        failure.frames += failure.trace
        failure.trace = []
        _end_entry(failure)

    def _close(self, at: int | None) -> None:
        failure, self._failure = self._failure, None
        if failure is None:
            return
        end = failure.at + len(failure.lines) if at is None else at - 1
        self._close_trace(failure.at, failure)
        _flush(failure)
        label, test = parse_title(failure.at, failure.title) if failure.title else ("", None)
        if test is not None and label != "ERROR collecting":
            path = _test_path(test, failure.frames, in_test=label == "FAILED")
            test = RawTest(test.at, path, test.names, test.param)
        if test is not None:
            self._titled.append(test)
        lines = tuple(failure.lines)
        self._found.add_block(Block(failure.at, max(end, failure.at), lines, tuple(failure.frames), test, label))


def _inside_failures(line: str) -> bool:
    if line.startswith("_"):
        return bool(_RULE.match(line) or (line.startswith("___") and line.endswith("___") and _TITLE.match(line)))
    if line.startswith("E   "):
        return True
    found = _LOCATION.match(line) if ".py:" in line else None
    return found is not None and (found[3] or "in ").startswith("in ")


def _end_entry(failure: _Failure) -> None:
    failure.function = failure.path = None
    failure.source = []


def _flush(failure: _Failure) -> None:
    failure.lines += failure.captured or ()
    failure.captured = None


def _keep(failure: _Failure, line: str) -> None:
    if len(failure.lines) < MAX_LINES:
        failure.lines.append(line)


def _key(test: RawTest) -> tuple[object, ...]:
    """A title tells no path, except for a file that can't be collected."""
    return (test.names, test.param) if test.names else (test.path,)


def _test_path(test: RawTest, frames: list[RawFrame], *, in_test: bool) -> str:
    """Where a test that only a title names lies: the frame of its function, else of a test file, else (`in_test`: it
    wasn't a fixture that failed) the first; '' where none tells."""
    for frame in frames:
        if frame.function == test.names[-1]:
            return frame.path
    for frame in frames:
        name = frame.path.replace("\\", "/").rpartition("/")[2]
        if name.startswith("test_") or name.endswith("_test.py"):
            return frame.path
    own = [frame.path for frame in frames if "site-packages" not in frame.path]
    return own[0] if own and in_test else ""
