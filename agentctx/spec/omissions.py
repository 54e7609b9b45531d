"""The omission check, and its repair: adds the signatures (headers, else lines) and imports that kept text refers to,
as far as the budget lasts. Pure.

A closure, not a loop: what an added header refers to is added too, nearest first, so that checking the result
again finds nothing that could still be added.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from agentctx.prompt import NeedKind, OmissionReport, PromptDocument, PromptLink, Selection, TokenizedPrompt, Why
from agentctx.source import Resolution, Role, SymbolKind
from agentctx.spec.check import check, is_defined, nearest
from agentctx.spec.draft import Draft
from agentctx.spec.index import PromptIndex

__all__ = ["check", "close", "repair", "targets"]
_RANKS = {NeedKind.VARIABLE: 1, NeedKind.REEXPORT: 3}


class Want(NamedTuple):
    """A unit to add. Sorts by: errors first, what is used of definitions, then variables, then what is only imported or
    handed on; distance; what the likeliest code uses; position.
    """

    severity: int  # 0 error, 1 warning
    rank: int  # 0 a use, 1 a variable, 2 an import's name, 3 a re-export
    distance: int
    doubt: float  # the score of what uses it, negated
    unit: int
    symbol: str  # '' for a statement or configuration
    either: tuple[int, ...] = ()  # units of which one will do, `unit` too; () where only that one does


def repair(
    document: PromptDocument,
    tokenized: TokenizedPrompt,
    selection: Selection,
    *,
    enabled: bool = True,
    evidence_share: float = 0.5,
    index: PromptIndex | None = None,
) -> tuple[Selection, OmissionReport]:
    """The selection with what was missing and fits below its limit, and the check of the result.

    With `enabled` off the selection as it is, and its check.
    """
    known = index if index is not None else PromptIndex(document)
    if not enabled:
        return selection, check(document, selection, index=known)
    draft = Draft.resume(known, tokenized, selection, int(selection.limit * evidence_share))
    close(draft)
    result = draft.selection(selection.findings)
    return result, check(document, result, index=known)


def close(draft: Draft, *, errors_only: bool = False, reserve: int = 0) -> None:
    """Add the transitive closure of missing headers and imports to the draft, the worst first; leaves `reserve` tokens.

    A header comes in only where the least of all else that is wanted (signature lines, imports) would still fit beside
    it; else its own line does.

    What doesn't fit is passed over for good: a spine that comes in with something else makes it cheaper, but takes
    as much from the room.
    """
    todo = list(wants(draft, draft.kept, 1))
    owed = Owed(draft)
    if not errors_only:
        owed.take(owed.of(draft.kept))
    heapq.heapify(todo)
    while todo:
        want = heapq.heappop(todo)
        least = owed.paid(want)
        if (errors_only and want.severity) or not _is_missing(draft, want):
            continue
        new = draft.missing(want.unit)
        more = set() if errors_only else owed.of(new)
        if draft.fits(new, reserve=reserve + owed.n_tokens + owed.cost(more)):
            owed.take(more)
            for found in wants(draft, draft.keep(want.unit, Why.REPAIRED, 2), want.distance + 1):
                heapq.heappush(todo, found)
        elif not errors_only and draft.fits(draft.missing(least), reserve=reserve):
            draft.keep(least, Why.REPAIRED, 2)


@dataclass(slots=True)
class Owed:
    """The least that kept text still wants: signature lines with their headings (headers where there are no lines), and
    imports."""

    draft: Draft
    units: set[int] = field(default_factory=set)
    n_tokens: int = 0

    def of(self, users: Iterable[int]) -> set[int]:
        """What would be owed for units, kept or not, beside what is."""
        found: set[int] = set()
        index = self.draft.index
        for user in users:
            for link in index.links[user]:
                for symbol, needed in targets(index, link):
                    is_use = not symbol or link.role is not Role.IMPORT
                    if is_use and is_missing(self.draft, symbol, needed):
                        found.update(self.draft.missing(_least(index, symbol, needed)))
        return found - self.units

    def take(self, units: Iterable[int]) -> None:
        """Owe units that aren't owed yet."""
        for unit in units:
            self.units.add(unit)
            self.n_tokens += self.draft.sizes[unit]

    def cost(self, units: Iterable[int]) -> int:
        return sum(self.draft.sizes[unit] for unit in units)

    def paid(self, want: Want) -> int:
        """The least that a want takes, no longer owed; headings stay, for others."""
        least = _least(self.draft.index, want.symbol, want.unit)
        if least in self.units:
            self.units.discard(least)
            self.n_tokens -= self.draft.sizes[least]
        return least


def _least(index: PromptIndex, symbol: str, unit: int) -> int:
    """A symbol's signature line; the unit itself where there is none, and for '' (a statement)."""
    definition = index.definition(symbol) if symbol else None
    return unit if definition is None or definition.line is None else definition.line


def wants(draft: Draft, units: Iterable[int], distance: int) -> Iterator[Want]:
    """What kept `units` refer to and isn't kept, although it is packed."""
    for unit in units:
        severity, doubt = 0 if draft.kept[unit].tier <= 1 else 1, -draft.kept[unit].score
        for link in draft.index.links[unit]:
            for symbol, needed in targets(draft.index, link):
                want = Want(severity, 2 if link.role is Role.IMPORT else 0, distance, doubt, needed, symbol)
                if _is_missing(draft, want):
                    yield want
            for need in link.needs:
                how_bad = severity if draft.kept[unit].tier == 0 else 1
                want = Want(how_bad, _RANKS[need.kind], distance, doubt, nearest(need.units, unit), "", need.units)
                if need.units and _is_missing(draft, want):
                    yield want
        for needed in draft.index.configs.get(unit, ()):
            if needed not in draft.kept:
                yield Want(severity, 0, distance, doubt, needed, "")


def targets(index: PromptIndex, link: PromptLink) -> Iterator[tuple[str, int]]:
    """(symbol, header) of what a link resolves to, as far as it is packed, else its line; ('', unit) for its import."""
    if link.via is not None:
        yield "", link.via
    if link.state is Resolution.RESOLVED:
        for symbol in link.targets:
            definition = index.definition(symbol)
            # a module has no signature: its first statement would say nothing about what is used of it
            if definition is None or definition.kind is SymbolKind.MODULE:
                continue
            needed = definition.line if definition.header is None else definition.header
            if needed is not None:
                yield symbol, needed


def is_missing(draft: Draft, symbol: str, unit: int) -> bool:
    """Whether neither header nor line of a symbol is kept; for '' whether the unit isn't."""
    if not symbol:
        return unit not in draft.kept
    return not is_defined(draft.index.document.definitions[symbol], draft.kept)


def _is_missing(draft: Draft, want: Want) -> bool:
    if not want.symbol:
        return not any(unit in draft.kept for unit in want.either or (want.unit,))
    return is_missing(draft, want.symbol, want.unit)
