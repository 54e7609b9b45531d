"""Units by score, each with room for what it needs. Pure."""

from __future__ import annotations

from agentctx.prompt import Why
from agentctx.spec.draft import Draft
from agentctx.spec.omissions import Owed
from agentctx.spec.select import Float64, candidates


def fill_with_needs(draft: Draft, scores: Float64, *, reserve: int = 0) -> None:
    """Tier 3: by score, as `select.fill`. Leaves `reserve` tokens, and more where the signature lines and imports that
    kept text wants take more."""
    owed = Owed(draft)
    owed.take(owed.of(draft.kept))
    for unit in candidates(draft, scores):
        if unit in draft.kept:
            continue
        new = draft.missing(unit)
        more = owed.of(new)
        if draft.fits(new, reserve=max(reserve, owed.n_tokens + owed.cost(more))):
            draft.keep(unit, Why.SCORED, 3, float(scores[unit]))
            owed.take(more)
