"""Outlines of Markdown and reStructuredText."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentctx.repo.parse_lines import Lines
from agentctx.repo.plain_parts import (
    Outline,
    Part,
    head_rows,
    runs,
)

_HEADING = re.compile(rb"(#{1,6})(\s|$)")
_FENCE = re.compile(rb"(```+|~~~+)")
_SETEXT = re.compile(rb"(=+|-+)$")


def markdown(lines: Lines) -> Outline:
    """Sections by headings; fenced code, front matter and tables stay whole."""
    parts: list[Part] = []
    front = _front_matter(lines)
    whole = [(0, front)] if front else []
    fenced = list(_fences(lines, front))
    inside = {row for first, end in fenced for row in range(first, end)}
    for row in range(front, len(lines)):
        match = _HEADING.match(lines.text(row)) if row not in inside and lines.column(row) < 4 else None
        if match is not None:
            parts.append(Part(row, len(match[1]), head_rows(lines, row, 1)))
        elif row > front and row not in inside and _underlines(lines, row, front, inside):
            level = 1 if lines.text(row).startswith(b"=") else 2
            parts.append(Part(row - 1, level, head_rows(lines, row - 1, 2)))
    if front and (not parts or parts[0].row > front) and front < len(lines):
        parts.insert(0, Part(front))
    tables = runs(lines, lambda row: row not in inside and lines.text(row).startswith(b"|"))
    return Outline(tuple(parts), (*whole, *fenced, *tables))


def _underlines(lines: Lines, row: int, front: int, inside: set[int]) -> bool:
    """Whether the row makes a heading of the one above, which must be a paragraph of one row."""
    above = lines.text(row - 1)
    is_text = bool(above) and row - 1 not in inside and not above.startswith((b"#", b"|", b"-", b"*", b">", b"<", b"="))
    alone = row - 2 < front or lines.is_blank(row - 2)
    return is_text and alone and lines.column(row) < 4 and bool(_SETEXT.match(lines.text(row)))


def _front_matter(lines: Lines) -> int:
    """The row behind `---` ... `---` (or `+++`) at the top; 0 without."""
    mark = lines.text(0)
    if mark not in (b"---", b"+++"):
        return 0
    return next((row + 1 for row in range(1, len(lines)) if lines.text(row) in (mark, b"...")), 0)


def _fences(lines: Lines, front: int) -> Iterator[tuple[int, int]]:
    first, fence = 0, b""
    for row in range(front, len(lines)):
        text = lines.text(row)
        match = _FENCE.match(text)
        if match is None:
            continue
        if not fence:
            first, fence = row, match[1]
        elif text.startswith(fence) and not text.strip(fence[:1]):
            yield first, row + 1
            fence = b""
    if fence:
        yield first, len(lines)


_ADORNED = re.compile(rb"([=\-~^\"'`#*+.:_])\1{2,}$")


def rst(lines: Lines) -> Outline:
    """Sections by underlined titles, whose levels follow from the order in which they occur; indented text whole."""
    levels: dict[tuple[bytes, bool], int] = {}
    parts: list[Part] = []
    for row in range(1, len(lines)):
        match = _ADORNED.match(lines.text(row))
        title = lines.text(row - 1)
        if (
            match is None
            or not title
            or _ADORNED.match(title)
            or len(title) > len(lines.text(row))
            or lines.column(row)
        ):
            continue
        over = row >= 2 and lines.text(row - 2) == lines.text(row)
        if not over and (lines.column(row - 1) or (row >= 2 and not lines.is_blank(row - 2))):
            continue
        level = levels.setdefault((match[1], over), len(levels) + 1)
        first = row - 2 if over else row - 1
        parts.append(Part(first, level, head_rows(lines, first, row + 1 - first)))
    indented = runs(lines, lambda row: lines.is_blank(row) or lines.column(row) > 0)
    return Outline(tuple(parts), tuple(indented))
