"""What a grammar takes at the top of a file although it can't stand alone: it is kept with what is before it.

Grammars of Go and Kotlin read statements at the top level where a file is broken; alone they don't parse. A unit of
that kind gets the one before it into its spine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from agentctx.repo.trees import TooHard, count_errors
from agentctx.source import FileSyntax, SourceFile, Unit, UnitKind

# How what belongs at the top level begins, comments aside. All else is tried by itself.
_USUAL = {
    "go": re.compile(rb"(?:package|import|func|type|var|const)\b"),
    "kotlin": re.compile(
        rb"@|(?:package|import|fun|val|var|class|object|interface|typealias|enum|data|sealed|annotation|public|private"
        rb"|internal|open|abstract|inline|suspend|operator|infix|external|const|lateinit|expect|actual|value)\b"
    ),
}
_BEFORE = re.compile(rb"(?:\s|//[^\n]*\n|/\*.*?\*/)*", re.DOTALL)


def with_neighbours(file: SourceFile, syntax: FileSyntax) -> FileSyntax:
    """The syntax with spines for units that can't stand alone. Files with errors are left as they are."""
    usual = _USUAL.get(syntax.language or "")
    if usual is None or syntax.n_errors:
        return syntax
    odd = {unit.index for unit in syntax.units if _is_odd(file.data, unit, usual, syntax.language or "")}
    return replace(syntax, units=tuple(_leaning(syntax.units, odd))) if odd else syntax


def _is_odd(data: bytes, unit: Unit, usual: re.Pattern[bytes], language: str) -> bool:
    if not unit.index or unit.spine or unit.kind is UnitKind.IMPORT:
        return False
    text = data[unit.span.start : unit.span.end]
    before = _BEFORE.match(text)
    start = before.end() if before is not None else 0
    if start == len(text) or usual.match(text, start):
        return False
    try:
        return count_errors(text, language) > 0
    except TooHard:
        return True


def _leaning(units: tuple[Unit, ...], odd: set[int]) -> Iterator[Unit]:
    """Spines with what they lean on, closed; in order, so that a row of odd units leans on the first that isn't."""
    spines: list[tuple[int, ...]] = []
    for unit in units:
        own = {*unit.spine} | ({unit.index - 1} if unit.index in odd else set())
        around = own.union(*(spines[other] for other in own if other < unit.index))
        closed = tuple(sorted(around - {unit.index}))  # the end of a block is in the spine of its header
        spines.append(closed)
        yield replace(unit, spine=closed) if closed != unit.spine else unit
