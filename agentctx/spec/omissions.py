"""The omission check, and its repair: adds the signatures and imports that kept text refers to, as far as the budget
lasts. Pure.

A closure, not a loop: what an added header refers to is added too, nearest first, so that checking the result
again finds nothing that could still be added.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
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
    handed on; distance, position.
    """

    severity: int  # 0 error, 1 warning
    rank: int  # 0 a use, 1 a variable, 2 an import's name, 3 a re-export
    distance: int
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

    What doesn't fit is passed over for good: a spine that comes in with something else makes it cheaper, but takes
    as much from the room.
    """
    todo = list(wants(draft, draft.kept, 1))
    heapq.heapify(todo)
    while todo:
        want = heapq.heappop(todo)
        wanted = not (errors_only and want.severity) and _is_missing(draft, want)
        if wanted and draft.fits(draft.missing(want.unit), reserve=reserve):
            for new in wants(draft, draft.keep(want.unit, Why.REPAIRED, 2), want.distance + 1):
                heapq.heappush(todo, new)


def wants(draft: Draft, units: Iterable[int], distance: int) -> Iterator[Want]:
    """What kept `units` refer to and isn't kept, although it is packed."""
    for unit in units:
        severity = 0 if draft.kept[unit].tier <= 1 else 1
        for link in draft.index.links[unit]:
            for symbol, needed in targets(draft.index, link):
                want = Want(severity, 2 if link.role is Role.IMPORT else 0, distance, needed, symbol)
                if _is_missing(draft, want):
                    yield want
            for need in link.needs:
                how_bad = severity if draft.kept[unit].tier == 0 else 1
                want = Want(how_bad, _RANKS[need.kind], distance, nearest(need.units, unit), "", need.units)
                if need.units and _is_missing(draft, want):
                    yield want
        for needed in draft.index.configs.get(unit, ()):
            if needed not in draft.kept:
                yield Want(severity, 0, distance, needed, "")


def targets(index: PromptIndex, link: PromptLink) -> Iterator[tuple[str, int]]:
    """(symbol, header) of what a link resolves to, as far as it is packed; ('', unit) for its import statement."""
    if link.via is not None:
        yield "", link.via
    if link.state is Resolution.RESOLVED:
        for symbol in link.targets:
            definition = index.definition(symbol)
            # a module has no signature: its first statement would say nothing about what is used of it
            if definition is not None and definition.header is not None and definition.kind is not SymbolKind.MODULE:
                yield symbol, definition.header


def _is_missing(draft: Draft, want: Want) -> bool:
    if not want.symbol:
        return not any(unit in draft.kept for unit in want.either or (want.unit,))
    return not is_defined(draft.index.document.definitions[want.symbol], draft.kept)
