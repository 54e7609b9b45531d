"""`node --test`'s spec reporter: a tree of suites and tests, then `failing tests:`; and ava's list. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.found import Found
from agentctx.repo.logs.javascript import SCRIPT, frame_of, untimed
from agentctx.repo.logs.reading import Reading

_SUITE = re.compile(r"^( *)\u25b6 (.+)$")
_TEST = re.compile(r"^( *)([\u2716\u2714\ufe0e\u2717]) (\S.* \(\d[\d.]*ms\))$")
_FAILING = re.compile(r"^\u2716 failing tests:$")
_PLACE = re.compile(r"^test at (.+):(\d+):\d+$")
_ERROR = re.compile(r"^\s*(?:\[?[A-Z]\w*(?:Error|Exception)\b.*|[-+] \S.*|\S.* (?:!=|==)=? .*)$")
_AVA = re.compile(r"^  \u2718 \[fail\]: (.+)$")
_AVA_PLACE = re.compile(rf"^  ([^\s:]+\.(?:{SCRIPT})):(\d+)$")


class NodeSpecFormat:
    """The tree tells a test's suites, the section at the end its file; the tree's text counts where that is missing."""

    wakes: ClassVar[tuple[str, ...]] = ("\u25b6 ", "\u2716 ")

    def __init__(self) -> None:
        self._found = Found()
        self._open: list[tuple[int, str]] = []
        self._tree: list[tuple[Reading, int]] = []
        self._section: list[tuple[Reading, int]] = []
        self._in_section = False
        self._path = ""
        self._reading: Reading | None = None
        self._indent = 0
        self._failed_in = -1  # indent of the failure before: what follows it further out is its suite

    @property
    def busy(self) -> bool:
        return self._reading is not None or self._in_section

    def feed(self, at: int, line: str) -> None:
        if _FAILING.match(line):
            self._close(at)
            self._in_section, self._failed_in = True, -1
        elif suite := _SUITE.match(line):
            self._close(at)
            indent = len(suite[1])
            self._open = [*(entry for entry in self._open if entry[0] < indent), (indent, suite[2])]
        elif test := _TEST.match(line):
            self._close(at)
            self._test(at, len(test[1]), test[2], untimed(test[3]))
        elif self._in_section and (place := _PLACE.match(line)):
            self._close(at)
            self._path = place[1]
        elif self._reading is not None:
            self._inside(at, line, self._reading)

    def finish(self) -> Found:
        self._close(self._reading.at + len(self._reading.lines) if self._reading else 0)
        suites: dict[str, list[Reading]] = {}
        for reading, _ in self._tree:
            suites.setdefault(reading.names[-1], []).append(reading)
        for reading, _ in self._section:
            if alike := suites.get(reading.names[-1]):
                reading.names = alike.pop(0).names
        for reading, end in self._section or self._tree:
            reading.close(self._found, end)
        return self._found

    def _test(self, at: int, indent: int, mark: str, title: str) -> None:
        """A mark with the name of the suite that is open there closes it, as does one further out than a failure."""
        closes = (indent, title) in self._open or (mark == "\u2716" and self._failed_in > indent)
        above = tuple(name for depth, name in self._open if depth < indent)
        self._open = [entry for entry in self._open if entry[0] < indent]
        self._failed_in = indent if mark == "\u2716" else self._failed_in
        if closes or mark != "\u2716":
            return
        self._reading = Reading(at, (*above, title), self._path if self._in_section else "")
        self._indent = indent

    def _inside(self, at: int, line: str, reading: Reading) -> None:
        if line.strip() and len(line) - len(line.lstrip()) <= self._indent:
            return self._close(at)
        if _ERROR.match(line) and frame_of(line) is None:
            self._found.add_error(at, line)
        reading.add(line)

    def _close(self, at: int) -> None:
        reading, self._reading = self._reading, None
        if reading is not None:
            (self._section if self._in_section else self._tree).append((reading, at))


class AvaFormat:
    """`✘ [fail]: title`, later the title again, its place, the difference or the error."""

    wakes: ClassVar[tuple[str, ...]] = ("\u2718 [fail]: ",)

    def __init__(self) -> None:
        self._found = Found()
        self._open: dict[tuple[str, ...], Reading] = {}  # failures listed and not yet read
        self._reading: Reading | None = None

    @property
    def busy(self) -> bool:
        return bool(self._open) or self._reading is not None

    def feed(self, at: int, line: str) -> None:
        if fail := _AVA.match(line):
            title = re.sub(
                r" (?:Error thrown in test|Rejected promise returned by test.*|Test finished .*)$", "", fail[1]
            )
            names = tuple(title.split(" \u203a "))
            self._open[names] = Reading(at, names)
        elif not line.startswith("   ") and (names := tuple(line.strip().split(" \u203a "))) in self._open:
            self._close(at)
            self._reading = self._open.pop(names)
            self._reading.at = at
        elif self._reading is not None:
            self._inside(at, line, self._reading)

    def finish(self) -> Found:
        self._close(self._reading.at + len(self._reading.lines) if self._reading else 0)
        for reading in self._open.values():
            self._found.add_test(reading.test)
        return self._found

    def _inside(self, at: int, line: str, reading: Reading) -> None:
        if line.strip() == "\u2500" or re.match(r"^  \d+ tests? failed", line):
            return self._close(at)
        if (place := _AVA_PLACE.match(line)) and not reading.path:
            reading.path = place[1]
        if _ERROR.match(line) and frame_of(line) is None:
            self._found.add_error(at, line)
        reading.add(line)

    def _close(self, at: int) -> None:
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.close(self._found, at)
