"""Go's stacks anywhere in a log: panics, fatal errors, timeouts of go test, data races. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.found import Found, RawFrame, RawTest
from agentctx.repo.logs.section import Section

_HEAD = re.compile(
    r"^\s*(?P<error>(?:panic|fatal error|runtime error|runtime): \S.*|WARNING: DATA RACE|SIG[A-Z]+: .*)$"
)
_AGAIN = re.compile(r"^\t?(?P<error>panic: .*)$")
_GOROUTINE = re.compile(r"^goroutine \d+ (?:gp=\S+ m=\S+ )?(?:mp=\S+ )?\[(?P<state>[^\]]*)\]:$")
_ACCESS = re.compile(
    r"^(?:Previous )?(?:[Rr]ead|[Ww]rite|atomic \w+) at 0x\w+ by .*:$|^Goroutine \d+ \(.*\) created at:$"
)
_FUNCTION = re.compile(
    r"^ {0,4}(?:created by )?(?P<name>[\w./\-~@%]*[\w\])}]\.?\S*?)(?:\(.*\))?(?: in goroutine \d+)?$"
)
_PLACE = re.compile(
    r"^(?:\t| {4,})(?P<path>(?:[A-Za-z]:)?[^\s:][^:]*\.(?:go|s|c|y)):(?P<line>\d+)(?: \+0x[0-9a-f]+)?(?: .*)?$"
)
_RUNNING = re.compile(r"^\t+(?P<name>\w\S*) \([\d.a-z]+\)$")
_TEST = re.compile(r"^(?:Test|Fuzz|Benchmark|Example)(?:[A-Z_0-9]|$)")
MAX_GOROUTINES = 40
MAX_LINES = 20_000


class GoTraceFormat:
    """A panic's message, then goroutines. Of several only the one that panicked, and those that run a test, count."""

    wakes: ClassVar[tuple[str, ...]] = ("panic: ", "fatal error: ", "goroutine ", "DATA RACE", "SIG")

    def __init__(self) -> None:
        self._found = Found()
        self._section: Section | None = None
        self._frames: list[RawFrame] = []
        self._lines: list[tuple[int, str]] = []  # of the goroutine that is read
        self._function: tuple[int, str] | None = None
        self._n = 0
        self._race = False
        self._running: list[tuple[int, str]] = []  # tests that ran when go test was stopped

    @property
    def busy(self) -> bool:
        return self._section is not None

    def feed(self, at: int, line: str) -> None:
        section = self._section
        if section is None:
            if (head := _HEAD.match(line)) or _GOROUTINE.match(line):
                self._open(at, line, head["error"] if head else "")
        elif at - section.at > MAX_LINES:
            self._close()
        elif place := _PLACE.match(line):
            self._place(at, line, place)
        elif (goroutine := _GOROUTINE.match(line)) or _ACCESS.match(line):
            self._goroutine(at, line, section, keep=goroutine is None)
        elif head := _HEAD.match(line):
            self._again(at, line, head["error"], section)
        else:
            self._other(at, line, section)

    def finish(self) -> Found:
        self._close()
        return self._found

    def _open(self, at: int, line: str, error: str) -> None:
        self._section, self._n, self._race = Section(at), 0, "DATA RACE" in error
        self._again(at, line, error, self._section)

    def _again(self, at: int, line: str, error: str, section: Section) -> None:
        if self._n and self._frames:
            self._close()
            return self._open(at, line, error)
        if error:
            self._found.add_error(at, error.removesuffix(" [recovered]").removesuffix(", repanicked]"))
        section.add(at, line)

    def _goroutine(self, at: int, line: str, section: Section, *, keep: bool) -> None:
        self._end_goroutine(section)
        self._n += 1
        self._lines = [(at, line)]
        if keep:
            self._race = True

    def _place(self, at: int, line: str, place: re.Match[str]) -> None:
        name = self._function[1] if self._function else None
        if len(self._frames) < 1_000:
            self._frames.append(RawFrame(place["path"], int(place["line"]), function_of(name) if name else None))
        joined = f"{self._lines.pop()[1]}\n{line}" if self._function and self._lines else line
        self._lines.append((at, joined))
        self._function = None

    def _other(self, at: int, line: str, section: Section) -> None:
        if line.startswith(("FAIL\t", "exit status ", "==================", "--- ", "ok  \t")) or self._lost(line):
            return self._close()
        if self._frames or self._n:
            named = _FUNCTION.match(line)
            self._function = (at, line.strip().removeprefix("created by ")) if named else None
            self._lines.append((at, line))
        else:
            if running := _RUNNING.match(line):
                self._running.append((at, running["name"]))
            section.add(at, line)

    def _lost(self, line: str) -> bool:
        """Whether the line can't be of a stack: two lines without a place, or more than a message's lines."""
        section = self._section
        if section is None or not line.strip():
            return False
        if self._n:
            return self._function is not None or _FUNCTION.match(line) is None
        return len(section.lines) > 30

    def _end_goroutine(self, section: Section) -> None:
        frames, self._frames = self._frames, []
        lines, self._lines = self._lines, []
        self._function = None
        in_test = any(frame.function and _TEST.match(frame.function.split(".")[0]) for frame in frames)
        if self._n <= MAX_GOROUTINES and (self._n <= 1 or in_test or self._race):
            section.trace(self._found, section.at + self._n, frames)
            for at, line in lines:
                section.add(at, line)
        if lines:
            section.end = max(section.end, lines[-1][0])

    def _close(self) -> None:
        section, self._section = self._section, None
        if section is None:
            return
        self._section = None
        self._end_goroutine(section)
        if any("test timed out" in line for line in section.lines[:3]):
            self._stopped(section)
        self._running = []
        if section.frames:
            self._found.add_block(section.block())

    def _stopped(self, section: Section) -> None:
        """The tests that ran: newer versions list them, their stacks tell where they lie."""
        own = {f.function: f.path for f in section.frames if f.function and f.path.endswith("_test.go")}
        tests = {name: path for name, path in own.items() if name and _TEST.match(name)}
        for at, name in self._running or [(section.at, name) for name in tests]:
            self._found.add_test(raw_test(at, name, tests.get(name.partition("/")[0], "")))


def raw_test(at: int, name: str, path: str) -> RawTest:
    """`TestX/case_1/deep`: the function TestX with the parameter `case_1/deep`."""
    function, _, case = name.partition("/")
    return RawTest(at, path, (function,), case or None)


def function_of(name: str) -> str:
    """`example.com/x.(*Stock).Add(...)` -> Add; a closure's is the function around it."""
    name = name.partition("(0x")[0].partition("({")[0].removesuffix("(...)").removesuffix("()")
    parts = name.rpartition("/")[2].split(" in goroutine ")[0].split(".")[1:] or [name]
    named = [part for part in parts if not re.fullmatch(r"(?:func)?\d+|gowrap\d+|-fm", part)]
    last = (named or parts)[-1]
    return re.sub(r"\[.*|\(.*", "", last) or last
