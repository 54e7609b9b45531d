"""mocha's list of failures (`N failing`, then `1) suite`, `test:`), and jasmine's (`1) name`, `Message:`). Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.found import Found
from agentctx.repo.logs.javascript import frame_of
from agentctx.repo.logs.reading import Reading

_SECTION = re.compile(r"^\s+\d+ failing$")
_ENTRY = re.compile(r"^  (\d+)\) (\S.*)$")
_PART = re.compile(r"^ {7,}(\S.*)$")
_HOOK = re.compile(r'^"(?:before|after) (?:each|all)" hook(?:: .*?)?(?: (?:for|in) "(.*)")?$')
_MESSAGE = re.compile(
    r"^ {4,}(?:[A-Z]\w*(?:Error|Exception)\b.*|Error: .*|[-+]\S.*|Timeout of .*)$|^\S.* [!=]==? \S.*$"
)
_END = re.compile(r"^(?:npm |error |Error: Process completed|ELIFECYCLE|make: )")
_JASMINE = re.compile(r"^(\d+)\) (\S.*)$")
MAX_TITLES = 12  # lines of one title
MAX_BLANK = 3  # blank lines in a row, then something else begins


class MochaFormat:
    """Entries of the section `N failing`."""

    wakes: ClassVar[tuple[str, ...]] = (" failing\n",)

    def __init__(self) -> None:
        self._found = Found()
        self._reading: Reading | None = None
        self._titles: list[str] | None = None  # while the entry's title is read
        self._blank = 0
        self.busy = False

    def feed(self, at: int, line: str) -> None:
        if _SECTION.match(line):
            self.busy = True
            return self._close(at)
        if not self.busy:
            return
        if entry := _ENTRY.match(line):
            self._close(at)
            self._reading, self._titles = Reading(at, ()), []
            self._title(entry[2], self._reading)
        elif self._titles is not None and self._reading is not None:
            self._next_title(line, self._reading)
        else:
            self._inside(at, line)

    def finish(self) -> Found:
        self._close(self._reading.at + len(self._reading.lines) if self._reading else 0)
        return self._found

    def _next_title(self, line: str, reading: Reading) -> None:
        part = _PART.match(line)
        if part and self._titles is not None and len(self._titles) < MAX_TITLES:
            self._title(part[1], reading)
        else:
            self._titles = None

    def _title(self, text: str, reading: Reading) -> None:
        """The part that ends with a colon is the last."""
        titles = [*(self._titles or []), text.removesuffix(":") if text.endswith(":") else text]
        self._titles = None if text.endswith(":") else titles
        if hook := _HOOK.match(titles[-1]):
            reading.label = "FAILED in a hook of"
            titles[-1:] = [hook[1]] if hook[1] and hook[1] not in titles else []
        reading.names = tuple(titles)

    def _inside(self, at: int, line: str) -> None:
        self._blank = 0 if line.strip() else self._blank + 1
        if self._blank >= MAX_BLANK or _END.match(line):
            self._close(at)
            self.busy = self._blank < MAX_BLANK and not _END.match(line)
        elif self._reading is not None:
            if _MESSAGE.match(line) and frame_of(line) is None:
                self._found.add_error(at, line)
            self._reading.add(line)

    def _close(self, at: int) -> None:
        reading, self._reading, self._titles = self._reading, None, None
        if reading is not None and reading.names:
            reading.close(self._found, at)


class JasmineFormat:
    """An entry is a numbered name, then `Message:` and `Stack:`. The name is what describe and it say, in one line."""

    wakes: ClassVar[tuple[str, ...]] = ("  Message:",)
    back: ClassVar[int] = 1

    def __init__(self) -> None:
        self._found = Found()
        self._title: tuple[int, str] | None = None
        self._reading: Reading | None = None

    @property
    def busy(self) -> bool:
        return self._reading is not None

    def feed(self, at: int, line: str) -> None:
        entry = _JASMINE.match(line)
        if line.startswith("  Message:") and self._title is not None:
            self._reading = Reading(self._title[0], (self._title[1],))
        elif entry or (self._reading is not None and line.strip() and not line.startswith(" ")):
            self._close(at)
            self._title = (at, entry[2]) if entry else None
        elif self._reading is None:
            self._title = None
        else:
            if not any(kept.startswith("  Stack:") for kept in (*self._reading.lines, line)):
                self._found.add_error(at, line)
            self._reading.add(line)

    def finish(self) -> Found:
        self._close(self._reading.at + len(self._reading.lines) if self._reading else 0)
        return self._found

    def _close(self, at: int) -> None:
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.close(self._found, at)
