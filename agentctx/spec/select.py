"""Scores + pins + budget -> Selection. Pure and deterministic.

Tier 0, then tier 1, then tier 2, then units by score; every unit with its spine. The limit is hard, unless
`over_budget` says otherwise, and the log and the tests together take at most their share of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agentctx.config import OverBudget
from agentctx.errors import BudgetError
from agentctx.prompt import (
    Finding,
    KeptUnit,
    Pin,
    PinReason,
    Pins,
    PromptDocument,
    Section,
    Selection,
    TokenizedPrompt,
    Why,
)
from agentctx.spec import leads
from agentctx.spec.draft import Draft, unit_sizes
from agentctx.spec.holdings import Holdings
from agentctx.spec.index import PromptIndex
from agentctx.spec.overbudget import needed, shrink

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SelectOptions:
    """`limit` in tokens; `evidence_share`: most of the limit that log and tests together may take (1: all).

    `lead_share`: most of the limit that the code pinned for targets and frames may take (1: all); see `spec.leads`.
    `gap`: gaps of at most so many tokens are closed; see `spec.gaps`. `stated`: the limit that messages name, where
    `limit` is less of it because the marks for left-out lines count.
    """

    limit: int
    over_budget: OverBudget = OverBudget.REDUCE
    evidence_share: float = 0.5
    lead_share: float = 1.0
    stated: int | None = None
    gap: int = 0

    def __post_init__(self) -> None:
        if self.limit < 1 or not 0.0 <= self.evidence_share <= 1.0:
            raise ValueError(f"limit {self.limit}, evidence share {self.evidence_share}")


def rank_scores(document: PromptDocument) -> Float64:
    """float64 (U,): the rank's score of each unit, for a selection without a drafter."""
    return np.array([unit.score for unit in document.units], dtype=np.float64)


def select(
    tokenized: TokenizedPrompt,
    scores: Float64,
    pins: Pins,
    options: SelectOptions,
    *,
    index: PromptIndex | None = None,
) -> Selection:
    """Units to keep. scores: float64 (U,), higher is better; equal scores go by position.

    Raises:
        BudgetError: tier 0 is above the limit, or over_budget is FAIL and the pins are.
        ValueError: not one finite score per unit.
    """
    known = index if index is not None else PromptIndex(tokenized.document)
    draft, findings = keep_pins(known, tokenized, scores, pins, options)
    fill(draft, scores)
    return draft.selection(findings)


def keep_pins(
    index: PromptIndex, tokenized: TokenizedPrompt, scores: Float64, pins: Pins, options: SelectOptions
) -> tuple[Draft, tuple[Finding, ...]]:
    """The first three tiers, as far as they fit, and what is to be said about it."""
    if scores.shape != (len(index.document.units),) or not np.isfinite(scores).all():
        raise ValueError(f"{scores.shape} scores for {len(index.document.units)} units, or not all finite")
    sizes = unit_sizes(tokenized)
    limit, cap = options.limit, int(options.limit * options.evidence_share)
    holdings = Holdings.of(index, sizes, (pin.units for pin in pins.pins))
    findings = pins.findings
    if options.lead_share < 1 and holdings.n_code > int(limit * options.lead_share):
        findings += leads.hold(holdings, pins.pins, int(limit * options.lead_share))
    need, evidence = holdings.n_tokens, holdings.n_evidence
    n_window = sum(sizes[unit.index] for unit in index.document.units if unit.section is not Section.SIGNATURES)
    if need > limit and options.over_budget == OverBudget.FAIL:
        raise _too_small("the pins need", need, limit)
    if need > limit and options.over_budget == OverBudget.RAISE:
        findings += (_said(need, limit, f"it was raised to {need}"),)
        limit, cap = need, need
    elif need > limit and options.over_budget == OverBudget.DENSE:
        findings += (_said(need, limit, f"all {n_window} tokens of the window were kept"),)
        cap = n_window
    elif need > limit or evidence > cap:
        tier_0 = needed(index, sizes, (pin.units for pin in pins.pins if pin.tier == 0))[0]
        if tier_0 > limit:
            raise _too_small("what is never dropped (system, tools, request, tail) needs", tier_0, limit)
        findings += shrink(holdings, pins.pins, limit=limit, cap=cap, stated=options.stated or limit)
    draft = Draft(index, sizes, limit, cap)
    for kept in _pinned(pins.pins, holdings.held, scores):
        draft.add(kept)
    if need > limit and options.over_budget == OverBudget.DENSE:
        _keep_all(draft, scores)
    return draft, findings


def fill(draft: Draft, scores: Float64, *, reserve: int = 0) -> None:
    """Tier 3: by score; what doesn't fit is skipped, and smaller ones go on. Leaves `reserve` tokens."""
    # Once is enough: what didn't fit never will. A spine that comes in with another unit makes it cheaper by
    # that spine, but takes as much from the room.
    for unit in candidates(draft, scores):
        if unit not in draft.kept and draft.fits(draft.missing(unit), reserve=reserve):
            draft.keep(unit, Why.SCORED, 3, float(scores[unit]))


def candidates(draft: Draft, scores: Float64) -> list[int]:
    """Units that may be kept for their own sake and aren't yet: best first, then by position."""
    order = np.argsort(-scores, kind="stable").tolist()
    support = draft.index.is_support
    return [unit for unit in order if unit not in draft.kept and not support[unit]]


def _pinned(pins: Sequence[Pin], held: Sequence[tuple[int, ...]], scores: Float64) -> Iterable[KeptUnit]:
    tiers: dict[int, int] = {}
    reasons: dict[int, set[PinReason]] = {}
    reduced: set[int] = set()
    whole: set[int] = set()
    for pin, units in zip(pins, held, strict=True):
        for unit in units:
            tiers[unit] = min(pin.tier, tiers.get(unit, pin.tier))
            reasons.setdefault(unit, set()).add(pin.reason)
        if len(units) < len(pin.units):
            reduced.update(units)
        elif pin.tier < 2:
            whole.update(units)
    reduced -= whole
    order = {reason: place for place, reason in enumerate(PinReason)}
    for unit in sorted(tiers):
        why = tuple(sorted(reasons[unit], key=lambda reason: order[reason]))
        yield KeptUnit(unit, tiers[unit], Why.PINNED, why, float(scores[unit]), unit in reduced)


def _keep_all(draft: Draft, scores: Float64) -> None:
    for unit, support in enumerate(draft.index.is_support):
        if unit not in draft.kept and draft.index.document.units[unit].section is not Section.SIGNATURES:
            draft.add(KeptUnit(unit, 3, Why.SPINE if support else Why.SCORED, score=float(scores[unit])))


def _said(need: int, limit: int, what: str) -> Finding:
    return Finding("budget", "warning", f"the pins need {need} tokens, the limit is {limit}: {what}")


def _too_small(what: str, need: int, limit: int) -> BudgetError:
    return BudgetError(
        f"{what} {need} tokens, the limit is {limit}",
        hint="give at least --budget {need} (and --window, if given)",
        need=need,
    )
