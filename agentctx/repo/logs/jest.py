"""jest: `FAIL path`, then `● describe › test` with a message, the source and frames. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.found import Found, RawFrame
from agentctx.repo.logs.javascript import SCRIPT, untimed
from agentctx.repo.logs.reading import Reading

_FAIL = re.compile(rf"^\s*FAIL\s+(?:(?:\[[^\]]+\]|\S+) )?(\S.*?\.(?:{SCRIPT}))(?: \(.*\))?$")
_TITLE = re.compile(r"^  \u25cf (\S.*)$")
_SUITE = ("Test suite failed to run", "Your test suite must contain at least one test.")
_NOT_TESTS = ("Console", "Cannot log after tests are done", "Deprecation Warning", "Validation Warning")
_END = re.compile(r"^(?:PASS|FAIL|RUNS)\s|^(?:Test Suites|Tests|Snapshots|Time):\s|^Summary of all failing tests")
_MATCHER = re.compile(
    r"^    (?:expect\(.*\)\S*.*|(?:[A-Z]\w*)?(?:Error|Exception)(?: \[\w+\])?:.*"
    r"|(?:Expected|Received)\b[^:]*:.*|- .*|\+ .*|thrown: .*)$"
)
_PLACE = re.compile(rf"^\s+(?:SyntaxError: )?((?:[A-Za-z]:)?[^\s:()]+\.(?:{SCRIPT})):(?: .*\()?(\d+)(?::\d+|, ?\d+)\)?")
_POINTED = re.compile(r"^\s*> +\d+ \| ?(.*)$")
_TREE = re.compile(r"^\s+[\u2715\u00d7] (.+)$")


class JestFormat:
    """Blocks between titles; a test that jest lists twice (its summary) counts once."""

    wakes: ClassVar[tuple[str, ...]] = ("FAIL ", "  \u25cf ", "\u2715 ")

    def __init__(self) -> None:
        self._found = Found()
        self._path = ""
        self._reading: Reading | None = None
        self._known: set[tuple[str, tuple[str, ...]]] = set()

    @property
    def busy(self) -> bool:
        return self._reading is not None

    def feed(self, at: int, line: str) -> None:
        if title := _TITLE.match(line):
            self._close(at)
            self._open(at, title[1])
        elif fail := _FAIL.match(line):
            self._close(at)
            self._path = fail[1]
        elif self._reading is not None:
            if _END.match(line) or (line.strip() and not line.startswith(" ")):
                self._close(at)
            else:
                self._inside(at, line, self._reading)

    def finish(self) -> Found:
        self._close(self._reading.at + len(self._reading.lines) if self._reading else 0)
        return self._found

    def _open(self, at: int, title: str) -> None:
        if not self._path or title.startswith(_NOT_TESTS):
            return
        names = () if title in _SUITE else tuple(part.strip() for part in untimed(title).split(" \u203a "))
        if (self._path, names) not in self._known:
            self._known.add((self._path, names))
            self._reading = Reading(at, names, self._path)

    def _inside(self, at: int, line: str, reading: Reading) -> None:
        reading.add(line)
        if _MATCHER.match(line) or (not reading.names and len(reading.lines) == 2):
            self._found.add_error(at, line)
        if not reading.names and (place := _PLACE.match(line)):
            self._found.add_trace(at, [RawFrame(place[1], int(place[2]))])
        if pointed := _POINTED.match(line):
            self._found.add_quoted(reading.path, pointed[1])

    def _close(self, at: int) -> None:
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.close(self._found, at)
