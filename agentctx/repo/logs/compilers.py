"""What compilers report: a place and a message, then the source and notes. Warnings don't count. Pure.

go build, javac, kotlinc, scalac, Maven's and sbt's lines, gcc and clang, MSVC, C#'s compiler have one shape: a line
that names place, severity and message, and lines that go on with it.
"""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.found import Found, RawFrame
from agentctx.repo.logs.section import Section

MAX_MORE = 25  # lines that go on with a message


class Reported:
    """One error after the other. Subclasses say what an error is (groups `path`, `line`, `message`) and goes on."""

    wakes: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self._found = Found()
        self._section: Section | None = None
        self._left = 0
        self._known: set[tuple[str, int, str]] = set()

    @property
    def busy(self) -> bool:
        return self._section is not None

    def match(self, line: str) -> re.Match[str] | None:
        """The error that a line reports."""
        raise NotImplementedError

    def goes_on(self, line: str) -> bool:
        """Whether a line belongs to the error before it."""
        raise NotImplementedError

    def keeps(self, line: str) -> bool:
        """Whether a line that goes on is worth keeping."""
        return True

    def outer(self) -> list[RawFrame]:
        """Places that lead to the error, outermost first."""
        return []

    def more_error(self, line: str) -> bool:
        """Whether a line that goes on is part of the message."""
        return False

    def feed(self, at: int, line: str) -> None:
        if found := self.match(line):
            self._close()
            self._open(at, line, found)
        elif self._section is None:
            return
        elif self._left and self.goes_on(line):
            self._left -= 1
            if self.keeps(line):
                self._section.add(at, line)
            if self.more_error(line):
                self._found.add_error(at, line)
        else:
            self._close()

    def finish(self) -> Found:
        self._close()
        return self._found

    def _open(self, at: int, line: str, found: re.Match[str]) -> None:
        groups = found.groupdict()
        frame = RawFrame(found["path"], int(found["line"])) if groups.get("path") else None
        key = (frame.path if frame else "", frame.line if frame else 0, found["message"])
        if key in self._known:
            return  # build tools repeat errors at the end
        if len(self._known) < 5_000:
            self._known.add(key)
        self._section, self._left = Section(at), MAX_MORE
        self._section.frames = [*self.outer(), frame] if frame else []
        self._found.add_error(at, found["message"])
        self._section.add(at, line)

    def _close(self) -> None:
        section, self._section = self._section, None
        if section is not None:
            self._found.add_trace(section.at, section.frames)
            self._found.add_block(section.block())
