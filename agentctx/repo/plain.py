"""Text without a grammar -> units: sections, tables, keys, statements or paragraphs; see `plain_outline`.

A part that is cut into pieces, or that holds other parts, begins with a unit of its own: its heading, key or table
line. It is the spine of what stands below it, so that nothing is shown without the heading that it belongs to.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from agentctx.repo.parse_lines import Lines
from agentctx.repo.plain_outline import outline_of
from agentctx.repo.plain_parts import Outline, Part
from agentctx.source import Unit, UnitKind
from agentctx.spans import ByteSpan, LineSpan

MAX_LINES = 40
GROUP_LINES = 8  # small parts share a unit up to here, where the outline says so


def units(path: str, data: bytes) -> tuple[Unit, ...]:
    """TEXT units that tile `data`; none is longer than MAX_LINES lines, but for what must not be cut."""
    lines = Lines(data)
    if not len(lines):
        return ()
    outline = outline_of(path, lines)
    pieces = _pieces(lines, outline)
    made: list[Unit] = []
    for index, (piece, following) in enumerate(pairwise([*pieces, _Piece(len(lines), ())])):
        span = ByteSpan(lines.start(piece.row), lines.start(following.row))
        kind = UnitKind.CLOSE if piece.row == outline.close else UnitKind.TEXT
        made.append(Unit(index, kind, span, LineSpan(piece.row + 1, following.row), None, piece.spine))
    return _with_ends(tuple(made), outline)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A unit to be: its first row, and the numbers of the units that are its spine."""

    row: int
    spine: tuple[int, ...]


def _pieces(lines: Lines, outline: Outline) -> list[_Piece]:
    parts = _grouped(outline, len(lines))
    bounds = [part.row for part in parts] + [len(lines)]
    fixed = _Fixed(outline.whole)
    made: list[_Piece] = []
    around: list[tuple[int, int]] = []  # (level, number of the heading's unit) of the sections that are open
    for number, part in enumerate(parts):
        end = bounds[number + 1]
        while around and (not part.level or around[-1][0] >= part.level):
            around.pop()
        above = tuple(unit for _, unit in around)
        has_below = number + 1 < len(parts) and parts[number + 1].level > part.level > 0
        rows = [part.row, *_cuts(lines, fixed, part.row, end)]
        head = part.row + part.head
        if part.head and head < end and (has_below or len(rows) > 1) and not fixed.holds(head):
            made.append(_Piece(part.row, above))
            above = (*above, len(made) - 1)
            rows = [head, *_cuts(lines, fixed, head, end)]
        if part.level:
            around.append((part.level, above[-1] if len(above) > len(around) else len(made)))
        made += [_Piece(row, above) for row in rows]
    return made


def _grouped(outline: Outline, n_rows: int) -> list[Part]:
    """The parts from row 0 on; where the outline says so, small ones together."""
    parts = list(outline.parts)
    if not parts or parts[0].row > 0:
        parts.insert(0, Part(0))
    if not outline.grouped:
        return parts
    bounds = [part.row for part in parts] + [n_rows]
    out: list[Part] = []
    for number, part in enumerate(parts):
        apart = part.row in (outline.open_end, outline.close) or part.alone
        if not out or apart or bounds[number + 1] - out[-1].row > GROUP_LINES:
            out.append(part)
    return out


class _Fixed:
    """Row ranges that are never cut."""

    def __init__(self, whole: Sequence[tuple[int, int]]) -> None:
        self._whole: list[tuple[int, int]] = []
        for first, end in sorted(whole):
            if self._whole and first < self._whole[-1][1]:
                self._whole[-1] = (self._whole[-1][0], max(self._whole[-1][1], end))
            else:
                self._whole.append((first, end))
        self._firsts = [first for first, _ in self._whole]

    def after(self, row: int) -> int:
        """`row`, or the end of the range that a cut before `row` would break."""
        at = bisect_right(self._firsts, row) - 1
        return self._whole[at][1] if at >= 0 and self._whole[at][0] < row < self._whole[at][1] else row

    def holds(self, row: int) -> bool:
        return self.after(row) != row


def _cuts(lines: Lines, fixed: _Fixed, first: int, end: int) -> list[int]:
    """Where a long part is cut: behind a blank row, else where the text is indented least; late, if possible."""
    out: list[int] = []
    at = first
    while end - at > MAX_LINES:
        rows = [row for row in range(at + 1, at + MAX_LINES + 1) if not fixed.holds(row) and not lines.is_blank(row)]
        blank = [row for row in rows if lines.is_blank(row - 1)]
        late = [row for row in rows if row > at + MAX_LINES // 2] or rows
        if blank:
            at = blank[-1]
        elif late:
            at = min(late, key=lambda row: (lines.column(row), -row))
        else:
            at = fixed.after(at + MAX_LINES)
        if at >= end:
            break
        out.append(at)
    return out


def _with_ends(made: tuple[Unit, ...], outline: Outline) -> tuple[Unit, ...]:
    """What opens and what closes the whole file belongs to everything between."""
    if outline.close is None:
        return made
    ends = {unit.index for unit in made if unit.lines.start == outline.close + 1 or unit.index == 0}
    out = []
    for unit in made:
        spine = tuple(sorted(({*unit.spine} | ends) - {unit.index})) if unit.index not in ends else _other(ends, unit)
        out.append(Unit(unit.index, unit.kind, unit.span, unit.lines, unit.symbol, spine))
    return tuple(out)


def _other(ends: set[int], unit: Unit) -> tuple[int, ...]:
    """The opening needs its close and the other way round."""
    return tuple(sorted(ends - {unit.index}))
