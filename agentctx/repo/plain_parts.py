"""Parts of a text, and what the outlines of all kinds of text are made with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agentctx.repo.parse_lines import Lines

VALUE_LINES = 400  # of one value in JSON
TABLE_LINES = 80  # rows of a table or of indented text that stay together


@dataclass(frozen=True, slots=True)
class Part:
    """Begins at `row`. `level` > 0: a section, which holds the parts of higher levels that follow.

    `head`: how many rows its heading takes, which stands for the part where it is cut. `alone`: not to be grouped.
    """

    row: int
    level: int = 0
    head: int = 0
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Outline:
    """`whole`: rows first <= r < end that are never cut apart. `open_end`, `close`: rows of a file in brackets."""

    parts: tuple[Part, ...] = ()
    whole: tuple[tuple[int, int], ...] = ()
    grouped: bool = False
    open_end: int | None = None  # first row behind what opens the file
    close: int | None = None  # first row of what closes it


def paragraphs(lines: Lines) -> Outline:
    """Rows after a blank row."""
    rows = (row for row in range(1, len(lines)) if lines.is_blank(row - 1) and not lines.is_blank(row))
    return Outline(tuple(Part(row) for row in rows))


def spans(pattern: re.Pattern[bytes], lines: Lines) -> Iterator[tuple[int, int, bytes]]:
    """(first row, last row, text) of each token."""
    for match in pattern.finditer(lines.data):
        if match.end() > match.start():
            yield lines.row_of(match.start()), lines.row_of(match.end() - 1), match[0]


def commented(lines: Lines, row: int, marks: tuple[bytes, ...] = (b"#", b";", b"--", b"//")) -> int:
    """The row, or the first of the comment rows directly above it."""
    while row > 0 and lines.text(row - 1).startswith(marks):
        row -= 1
    return row


def joined(lines: Lines) -> Iterator[tuple[int, int]]:
    """Rows that a backslash at the end holds together."""
    first = None
    for row in range(len(lines)):
        if lines.text(row).endswith(b"\\"):
            first = row if first is None else first
        elif first is not None:
            yield first, row + 1
            first = None
    if first is not None:
        yield first, len(lines)


def runs(lines: Lines, fits: Callable[[int], bool]) -> Iterator[tuple[int, int]]:
    """Maximal runs of rows that fit, as far as they are not too long to stay together."""
    first = None
    for row in range(len(lines) + 1):
        if row < len(lines) and fits(row):
            first = row if first is None else first
        elif first is not None:
            if 1 < row - first <= TABLE_LINES:
                yield first, row
            first = None


def head_rows(lines: Lines, row: int, n: int) -> int:
    """The heading's rows with the blank ones behind it."""
    end = row + n
    while end < len(lines) and lines.is_blank(end):
        end += 1
    return end - row


def headed(lines: Lines, rows: list[int]) -> Iterator[Part]:
    """Parts whose head is the row with the comments above it."""
    for row in rows:
        first = commented(lines, row)
        yield Part(first, 0, row + 1 - first)
