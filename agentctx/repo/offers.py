"""Ranked chunks -> offers: what goes into the window together, the most worth per token first. Pure.

A chunk is offered whole, because a fix often edits more than one of its statements and people read it as one thing;
one that would take too much of the budget is offered unit by unit, the likely ones first. A file's import statements
are offered too: fixes edit them along with the code below.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentctx.repo.rank import Ranked, unit_scores
from agentctx.source import FileSyntax, UnitKind

BYTES_PER_TOKEN = 4
WHOLE_SHARE = 1 / 8  # of the budget: larger chunks are offered in parts
SIZE_POWER = 0.55  # scores are divided by size ** this: 1 would be worth per token, but large chunks hold more edits
LEAST_SIZE = 160  # bytes: below, the lines that name a file and mark gaps cost as much as the code
IMPORT_WORTH = 0.5  # of the best chunk of the file


@dataclass(frozen=True, slots=True)
class Offer:
    """Units of one file. `score`: the chance of an edit by size, comparable among the offers of one task."""

    path: str
    units: tuple[int, ...]
    score: float
    why: str


@dataclass(frozen=True, slots=True)
class Limits:
    """In tokens. `budget`: what is kept in the end; `room`: what is to be filled with offers."""

    budget: int
    room: int

    @property
    def whole(self) -> int:
        """Bytes up to which a chunk is offered whole."""
        return int(self.budget * WHOLE_SHARE) * BYTES_PER_TOKEN

    @property
    def enough(self) -> int:
        """Bytes of chunks, best first, among which those that are chosen are: the rest need no offer."""
        return 4 * self.room * BYTES_PER_TOKEN


def offers(
    files: Mapping[str, FileSyntax],
    data: Mapping[str, bytes],
    ranking: Sequence[Ranked],
    query: frozenset[str],
    limits: Limits,
) -> list[Offer]:
    """What may go into the window, best first; equal ones in the order of the ranking."""
    found: list[Offer] = []
    seen: set[str] = set()
    n_bytes = 0
    for one in ranking:
        if one.score <= 0 or n_bytes > limits.enough:
            break
        file = files[one.chunk.path]
        n_bytes += _size(file, one.chunk.units)
        if file.path not in seen:
            seen.add(file.path)
            found += _imports(file, one.score)
        found += _parts(file, data[file.path], one, query, limits.whole)
    found.sort(key=lambda offer: -offer.score)
    return found


def _imports(file: FileSyntax, score: float) -> Iterator[Offer]:
    why = "imports of a file that ranks high"
    for unit in file.units:
        if unit.kind is UnitKind.IMPORT and unit.symbol is None:
            size = len(unit.span)
            yield Offer(file.path, (unit.index,), _worth(IMPORT_WORTH * score, size), why)


def _parts(file: FileSyntax, data: bytes, one: Ranked, query: frozenset[str], whole: int) -> Iterator[Offer]:
    """The chunk, or each of its units: the best of them with the chunk's score, the others by their share of it."""
    size = _size(file, one.chunk.units)
    if size <= whole or len(one.chunk.units) == 1:
        yield Offer(file.path, one.chunk.units, _worth(one.score, size), one.why)
        return
    parts = unit_scores(one, file, data, query)
    top = max(parts.values(), default=0.0) or 1.0
    for unit, score in parts.items():
        yield Offer(file.path, (unit,), _worth(one.score * score / top, size), one.why)


def _worth(score: float, size: int) -> float:
    return score / math.pow(max(size, LEAST_SIZE), SIZE_POWER)


def _size(file: FileSyntax, units: Iterable[int]) -> int:
    return sum(len(file.units[unit].span) for unit in units)
