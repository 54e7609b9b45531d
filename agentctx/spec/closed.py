"""Selection and repair together: what the pipeline calls with `--on-omission=repair`. Pure.

Repair after selection finds a full budget. So what the pins refer to comes in before tier 3, and tier 3 leaves a
share of the limit to the signatures that it needs itself.
"""

from __future__ import annotations

from agentctx.prompt import OmissionReport, Pins, Selection, TokenizedPrompt, Why
from agentctx.spec.draft import Draft
from agentctx.spec.index import PromptIndex
from agentctx.spec.omissions import check, close, targets
from agentctx.spec.select import Float64, SelectOptions, candidates, fill, keep_pins

RESERVE = 1 / 16  # of the limit, for signatures that tier-3 units need
FULL = 0.95  # below this, units come in although not all that they refer to does


def select_closed(
    tokenized: TokenizedPrompt,
    scores: Float64,
    pins: Pins,
    options: SelectOptions,
    *,
    index: PromptIndex | None = None,
) -> tuple[Selection, OmissionReport]:
    """Like `select` and then `repair`, with the room shared out between the two; and the check of the result.

    Raises: as `select`.
    """
    known = index if index is not None else PromptIndex(tokenized.document)
    draft, findings = keep_pins(known, tokenized, scores, pins, options)
    close(draft, errors_only=True)
    fill(draft, scores, reserve=int(draft.limit * RESERVE))
    close(draft)
    _top_up(draft, scores)
    if draft.n_tokens < FULL * draft.limit:
        fill(draft, scores)
    close(draft)
    result = draft.selection(findings)
    return result, check(known.document, result, index=known)


def _top_up(draft: Draft, scores: Float64) -> None:
    """More units by score, each only together with all that it refers to."""
    for unit in candidates(draft, scores):
        needed = _all_needed(draft, unit)
        if needed is not None and unit not in draft.kept:
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
