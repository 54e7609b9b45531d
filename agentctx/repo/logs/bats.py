"""Where bats says that a test failed: `(in test file test/a.bats, line 5)`, under TAP's or its own title. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.found import Found, RawFrame, RawTest
from agentctx.repo.logs.section import Section

_TITLE = re.compile(r"(?:^not ok \d+ |^ *✗ |\d+/\d+ ✗ )(?P<title>\S.*?)(?: in \d+m?s| \[\d+\])?$")
_PLACE = re.compile(
    r"(?:from function [`'](?P<name>[^']+)' )?in (?:test )?file (?P<path>[^,]+), line (?P<line>\d+)(?P<end>[,)])"
)
_MORE = re.compile(r"^[#\s]+\S")
MAX_LINES = 60


class BatsFormat:
    """The places come innermost first, the last one in the test's file; then what failed."""

    wakes: ClassVar[tuple[str, ...]] = ("in test file ", "(from function `", "(from function '")
    back: ClassVar[int] = 1

    def __init__(self) -> None:
        self._found = Found()
        self._title: tuple[int, str] | None = None
        self._section: Section | None = None
        self._frames: list[RawFrame] = []

    @property
    def busy(self) -> bool:
        return self._section is not None

    def feed(self, at: int, line: str) -> None:
        if title := _TITLE.search(line):
            self._close()
            self._title = (at, title["title"])
        elif place := _PLACE.search(line):
            if self._section is None:
                self._section = Section(self._title[0] if self._title else at)
            self._frames.append(RawFrame(place["path"], int(place["line"]), place["name"]))
            self._section.add(at, line.lstrip("# "))
        elif self._section is not None and _MORE.match(line) and at - self._section.at < MAX_LINES:
            if line.rstrip().endswith("failed"):
                self._found.add_error(at, line.lstrip("# "))
            self._section.add(at, line.lstrip("# "))
        else:
            self._close()
            self._title = None

    def finish(self) -> Found:
        self._close()
        return self._found

    def _close(self) -> None:
        section, self._section = self._section, None
        frames, self._frames = self._frames, []
        if section is None:
            return
        section.trace(self._found, section.at, frames)
        if self._title is not None and frames:
            test = RawTest(section.at, frames[-1].path, (self._title[1],))
            self._found.add_test(test)
            self._found.add_block(section.block(test, "FAILED"))
        else:
            self._found.add_block(section.block())
