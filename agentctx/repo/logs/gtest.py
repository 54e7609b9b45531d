"""GoogleTest, and Boost.Test's lines. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.found import Found, RawFrame, RawTest
from agentctx.repo.logs.section import Section

_RUN = re.compile(r"^\s*(?:\d+: )?\[ RUN      \] (?P<name>\S+)$")
_END = re.compile(
    r"^\s*(?:\d+: )?\[  ?(?P<verdict>     OK|FAILED |SKIPPED) \] (?P<name>[\w/]+\.[\w/]+)"
    r"(?:, where (?P<param>.*?))?(?P<time> \(\d+ ms\))?$"
)
_PLACE = re.compile(
    r"^(?:\d+: )?(?P<path>(?:[A-Za-z]:)?[^\s:(][^:(\n]*)"
    r"(?::(?P<line>\d+): Failure|\((?P<at>\d+)\): error: (?P<text>.*))$"
)
_UNKNOWN = re.compile(r"^(?:\d+: )?unknown file: (?:Failure|error: .*)$")
_BOOST = re.compile(
    r"^(?P<path>(?:[A-Za-z]:)?[^\s:(]+)(?:\((?P<line>\d+)\)|:(?P<at>\d+)): (?:fatal )?error: "
    r'in "(?P<name>[^"]+)": (?P<text>.*)$'
)
MAX_SAID = 6  # lines of one failure that are errors
MAX_LINES = 2_000


class GtestFormat:
    """A test runs from `[ RUN      ]` to its verdict; the list at the end names the failed ones again."""

    wakes: ClassVar[tuple[str, ...]] = ("[ RUN      ]", "[  FAILED  ]", ': error: in "', ': fatal error: in "')

    def __init__(self) -> None:
        self._found = Found()
        self._section: Section | None = None
        self._name = ""
        self._errors: list[tuple[int, str]] = []
        self._said = MAX_SAID  # lines since the last place
        self._paths: dict[str, str] = {}  # by suite
        self._pending: list[tuple[RawTest, Section | None]] = []
        self._passed: set[str] = set()
        self._listed: dict[str, tuple[int, str | None]] = {}

    @property
    def busy(self) -> bool:
        return self._section is not None

    def feed(self, at: int, line: str) -> None:
        if run := _RUN.match(line):
            self._section, self._name, self._errors = Section(at), run["name"], []
            self._said = MAX_SAID
        elif end := _END.match(line):
            self._verdict(at, end)
        elif boost := _BOOST.match(line):
            self._boost(at, line, boost)
        elif self._section is not None:
            if at - self._section.at > MAX_LINES:
                self._section = None
            else:
                self._inside(at, line, self._section)

    def finish(self) -> Found:
        if self._section is not None and self._section.frames:  # it crashed
            self._fail(self._section.at, self._name, None, self._section)
        known = {(*test.names, test.param) for test, _ in self._pending}
        for name, (at, param) in self._listed.items():
            test = gtest_test(at, name, param)
            if (*test.names, test.param) not in known:
                self._pending.append((test, None))
        for test, section in self._pending:
            path = test.path or self._paths.get(test.names[0], "")
            raw = RawTest(test.at, path, test.names, test.param)
            self._found.add_test(raw)
            if section is not None and section.lines:
                self._found.add_block(section.block(raw, "FAILED"))
        return self._found

    def _verdict(self, at: int, end: re.Match[str]) -> None:
        section, self._section = self._section, None
        if not end["verdict"].startswith("FAILED"):
            self._listed.pop(end["name"], None)
        elif end["time"] is not None or (section is not None and section.frames):
            self._fail(at, end["name"], end["param"], section)
        elif len(self._listed) < MAX_LINES:
            self._listed.setdefault(end["name"], (at, end["param"]))

    def _fail(self, at: int, name: str, param: str | None, section: Section | None) -> None:
        test = gtest_test(at, name, param)
        for frame in section.frames if section else ():
            self._found.add_trace(section.at if section else at, [frame])
        for error in self._errors:
            self._found.add_error(*error)
        path = next((frame.path for frame in section.frames), "") if section else ""
        if path:
            self._paths.setdefault(test.names[0], path)
        if len(self._pending) < MAX_LINES:
            self._pending.append((RawTest(test.at, path, test.names, test.param), section))

    def _inside(self, at: int, line: str, section: Section) -> None:
        if place := _PLACE.match(line):
            self._said = 0
            del section.frames[50:]
            section.frames.append(RawFrame(place["path"], int(place["line"] or place["at"])))
            self._errors.append((at, place["text"] or ""))
        elif _UNKNOWN.match(line):
            self._said = 0
        elif self._said < MAX_SAID and len(self._errors) < 200:
            self._said += 1
            self._errors.append((at, line))
        section.add(at, line)

    def _boost(self, at: int, line: str, boost: re.Match[str]) -> None:
        frame = RawFrame(boost["path"], int(boost["line"] or boost["at"]))
        test = RawTest(at, frame.path, tuple(part for part in boost["name"].split("/") if part))
        section = Section(at)
        section.add(at, line)
        section.frames = [frame]
        self._found.add_trace(at, [frame])
        self._found.add_error(at, boost["text"])
        self._found.add_test(test)
        self._found.add_block(section.block(test, "FAILED"))


def gtest_test(at: int, name: str, param: str | None = None) -> RawTest:
    """`Prices/Many.Digits/1` is the test Digits of Many with parameter 1; `Typed/0.Zero` is Zero of Typed, type 0."""
    suite, _, test = name.partition(".")
    test, _, index = test.partition("/")
    before, _, after = suite.partition("/")
    if after.isdigit():
        suite, index = before, index or after
    elif after:
        suite = after.partition("/")[0]
    return RawTest(at, "", (suite, test), index or param or None)
