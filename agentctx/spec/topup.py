"""The last room of a selection: units that come together with all that they refer to. Pure."""

from __future__ import annotations

from agentctx.prompt import Why
from agentctx.spec.draft import Draft
from agentctx.spec.omissions import targets
from agentctx.spec.select import Float64, candidates


def top_up(draft: Draft, scores: Float64) -> None:
    """More units by score, each only where the signatures and imports that it needs fit as well."""
    for unit in candidates(draft, scores):
        needed = None if unit in draft.kept else _all_needed(draft, unit)
        if needed is not None:
            draft.keep(unit, Why.SCORED, 3, float(scores[unit]))
            for other in needed:
                draft.keep(other, Why.REPAIRED, 2)


def _all_needed(draft: Draft, unit: int) -> list[int] | None:
    """Headers and imports to add with a unit, closed; None when they don't fit all."""
    index = draft.index
    needed: list[int] = []
    new = draft.missing(unit)
    todo, seen = list(new), set(new)
    while todo:
        if not draft.fits(seen):
            return None
        for link in index.links[todo.pop()]:
            for _, header in targets(index, link):
                if header not in draft.kept and header not in seen:
                    needed.append(header)
                    fresh = [other for other in draft.missing(header) if other not in seen]
                    seen.update(fresh)
                    todo.extend(fresh)
    return sorted(needed) if draft.fits(seen) else None
