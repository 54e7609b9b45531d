"""Catch2 and doctest for C++: test cases with sections. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.found import Found, RawFrame, RawTest
from agentctx.repo.logs.section import Section

_DASHES = re.compile(r"^-{60,}$")
_DOUBLE = re.compile(r"^={60,}$")
_CATCH = re.compile(r"^(?P<path>(?:[A-Za-z]:)?[^\s:(]+)(?::(?P<line>\d+)|\((?P<at>\d+)\)): FAILED:$")
_CATCH_PLACE = re.compile(r"^(?:[A-Za-z]:)?[^\s:(]+(?::\d+|\(\d+\))$")
_DOCTEST = re.compile(
    r"^(?P<path>(?:[A-Za-z]:)?[^\s:(]+)(?::(?P<line>\d+)|\((?P<at>\d+)\)): (?:FATAL )?ERROR: (?P<text>.*)$"
)
_CASE = re.compile(r"^(?:TEST CASE|Scenario): +(?P<name>.*)$")
MAX_TITLE = 20


class CatchFormat:
    """A header (rules around the name of a case and its sections), then `path:line: FAILED:`."""

    wakes: ClassVar[tuple[str, ...]] = ("-" * 60, ": FAILED:", "TEST CASE:", " ERROR: ")

    def __init__(self) -> None:
        self._found = Found()
        self._title: list[str] | None = None  # while a header is read
        self._names: list[str] = []
        self._section: Section | None = None

    @property
    def busy(self) -> bool:
        return self._title is not None or self._section is not None

    def feed(self, at: int, line: str) -> None:
        if found := _CATCH.match(line) or _DOCTEST.match(line):
            self._close()
            self._fail(at, line, found)
        elif self._section is not None:
            self._inside(at, line, self._section)
        elif case := _CASE.match(line):
            self._title = [case["name"]]
        elif _DASHES.match(line):
            self._rule()
        elif self._title is not None:
            self._header(line, self._title)

    def finish(self) -> Found:
        self._close()
        return self._found

    def _rule(self) -> None:
        """The first rule opens a header, the second closes it."""
        if self._title is None:
            self._title = []
        else:
            self._names, self._title = self._title, None

    def _header(self, line: str, title: list[str]) -> None:
        if not line.strip() and title:
            self._names, self._title = title, None
        elif len(title) >= MAX_TITLE or _DOUBLE.match(line):
            self._title = None
        elif line.strip() and not _CATCH_PLACE.match(line):
            title.append(line.strip())

    def _fail(self, at: int, line: str, found: re.Match[str]) -> None:
        if self._title:
            self._names = self._title
        self._title = None
        self._section = Section(at)
        self._section.add(at, line)
        frame = RawFrame(found["path"], int(found["line"] or found["at"]))
        self._section.frames = [frame]
        self._found.add_trace(at, [frame])
        self._found.add_error(at, found.groupdict().get("text") or "")

    def _inside(self, at: int, line: str, section: Section) -> None:
        if not line.strip() or _DASHES.match(line) or _DOUBLE.match(line) or at - section.at > 200:
            self._close()
            if _DASHES.match(line):
                self._rule()
            return
        section.add(at, line)
        if line.startswith("  "):
            self._found.add_error(at, line)

    def _close(self) -> None:
        section, self._section = self._section, None
        if section is None:
            return
        test = None
        if self._names:
            sections = "/".join(self._names[1:])
            test = RawTest(section.at, section.frames[0].path, (self._names[0],), sections or None)
            self._found.add_test(test)
        self._found.add_block(section.block(test, "FAILED" if test else ""))
