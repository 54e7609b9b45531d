"""The last resort for logs without a known format: lines that speak of errors, and places in files. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentctx.repo.logs.found import Block, Found, RawFrame

_TELLING = re.compile(
    r"\b(?:errors?|fail(?:ed|ure|ures)?|exception|panic(?:ked)?|fatal|assert\w*|violations?|crash(?:ed)?|abort(?:ed)?)\b"
    r"|\w(?:Error|Exception)\b",
    re.IGNORECASE,
)
_FILE = r"(?<![\w./\\@+~-])(?:[A-Za-z]:[\\/])?[\w./\\@+~-]*[\w)\]]\.[A-Za-z]\w{0,7}"
_PLACES = (
    # path:12, path(12, path line 12, path#L12, path on line 12, path" line 12
    re.compile(rf"(?P<path>{_FILE})(?::|\(|#L?|@|[\"',:;]?\s+(?:\(|at |on |in )?line:?\s+|\[)(?P<line>\d{{1,7}})\b"),
    # line 12 of path, line 12 in file path
    re.compile(rf"\bline:?\s+(?P<line>\d{{1,7}})\s*,?\s+(?:of|in)\s+(?:file\s+)?[\"'`]?(?P<path>{_FILE})"),
)
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
            for frame in places(line):
                found.add_trace(at, [frame])
        if kept:
            found.add_block(Block(kept[0][0], kept[-1][0], tuple(line for _, line in kept)))
        return found


def places(line: str) -> Iterator[RawFrame]:
    """Every place in a file that a line names, whatever the tool."""
    if ("line" in line or "Line" in line) or any(mark in line for mark in ":(#@["):
        for pattern in _PLACES:
            for found in pattern.finditer(line):
                yield RawFrame(found["path"], int(found["line"]))
