"""The last resort for logs without a known format: lines that speak of errors, and `path:line` places. Pure."""

from __future__ import annotations

import re

from agentctx.repo.logs.found import Block, Found, RawFrame

_TELLING = re.compile(
    r"\b(?:errors?|fail(?:ed|ure|ures)?|exception|panic(?:ked)?|fatal|assert\w*)\b|\w(?:Error|Exception)\b", re.I
)
_PLACE = re.compile(r"((?:[A-Za-z]:)?[\w./\\@+-]+\.[A-Za-z]\w{0,5})(?::|\(|, line |\", line )(\d+)")
CONTEXT = 3  # lines before and after a telling line
TAIL = 40  # last lines, telling or not
MAX_ERRORS = 40


class GenericFormat:
    """Looks at the end of a log, which its caller has kept."""

    def __init__(self) -> None:
        self._lines: list[tuple[int, str]] = []

    def feed(self, at: int, line: str) -> None:
        if line.strip():
            self._lines.append((at, line))

    def finish(self) -> Found:
        found = Found()
        keep: set[int] = set(range(max(0, len(self._lines) - TAIL), len(self._lines)))
        telling = [i for i, (_, line) in enumerate(self._lines) if _TELLING.search(line)][-MAX_ERRORS:]
        for i in telling:
            keep.update(range(max(0, i - CONTEXT), min(len(self._lines), i + CONTEXT + 1)))
            found.add_error(*self._lines[i])
        kept = [self._lines[i] for i in sorted(keep)]
        for at, line in kept:
            for place in _PLACE.finditer(line):
                found.add_trace(at, [RawFrame(place[1], int(place[2]))])
        if kept:
            found.add_block(Block(kept[0][0], kept[-1][0], tuple(line for _, line in kept)))
        return found
