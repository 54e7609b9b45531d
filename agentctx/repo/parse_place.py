"""Drafts of units -> units that tile the file: blank rows and free comments find their place, spines are closed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentctx.repo.parse_draft import Context, Draft
from agentctx.repo.parse_lines import Lines
from agentctx.source import Unit, UnitKind
from agentctx.spans import ByteSpan, LineSpan


def finish(drafts: Sequence[Draft], lines: Lines, symbol_of: Callable[[int | None], str | None]) -> tuple[Unit, ...]:
    """Units that tile the file. `symbol_of`: a definition's node id -> its symbol's id."""
    placed, index_of = place(drafts, lines)
    spines: list[frozenset[int]] = []
    units: list[Unit] = []
    for index, draft in enumerate(placed):
        parent = draft.context.parent
        spine = {index_of[i] for i in draft.group}
        if parent is not None:
            at = index_of[parent]
            spine |= spines[at] | {at}
        spines.append(frozenset(spine))
        next_row = placed[index + 1].first if index + 1 < len(placed) else len(lines)
        units.append(
            Unit(
                index=index,
                kind=draft.kind,
                span=ByteSpan(lines.start(draft.first), lines.start(next_row)),
                lines=LineSpan(draft.first + 1, next_row),
                symbol=symbol_of(draft.owner),
                spine=tuple(sorted(spine - {index})),
            )
        )
    return tuple(units)


def unit_at(units: Sequence[Unit]) -> list[int]:
    """Row (0-based) -> index of its unit."""
    return [unit.index for unit in units for _ in range(len(unit.lines))]


def place(drafts: Sequence[Draft], lines: Lines) -> tuple[list[Draft], list[int]]:
    """The drafts plus those for comments that stand free, and each old draft's new index."""
    placed: list[Draft] = []
    index_of: list[int] = []
    root = Context()
    end = Draft(UnitKind.STATEMENT, len(lines), len(lines), root, None)
    taken = -1
    for draft in [*drafts, end]:
        row = taken + 1
        column = lines.column(draft.first) if draft is not end else 0
        free = row if taken < 0 and row < draft.first else free_comment(lines, row, draft.first, column)
        if free is not None:
            context = draft.context
            placed.append(Draft(context.kind, free, draft.first - 1, context, context.owner))
        index_of.append(len(placed))
        placed.append(draft)
        taken = draft.last
    return placed[:-1], index_of


def free_comment(lines: Lines, row: int, end: int, column: int) -> int | None:
    """The first row in `row..end` of a comment after a blank row that is not indented deeper than `column`."""
    blank = False
    for at in range(row, end):
        if lines.is_blank(at):
            blank = True
        elif blank and lines.is_comment(at) and lines.column(at) <= column:
            return at
    return None
