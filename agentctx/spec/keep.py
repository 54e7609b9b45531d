"""Pins, repair and scores in one selection. Pure.

Repair comes between: first what pinned code refers to (a little of it, where nobody said what is to be edited), then
most of the budget by score, then what that refers to, then more by score. A unit comes in only where the signature
lines and the imports that it needs have room, too: nothing that kept code uses is put out by more code.
"""

from __future__ import annotations

from agentctx.prompt import OmissionReport, Pins, Selection, TokenizedPrompt
from agentctx.spec.check import check
from agentctx.spec.fill import fill_with_needs
from agentctx.spec.gaps import close_gaps
from agentctx.spec.index import PromptIndex
from agentctx.spec.omissions import close
from agentctx.spec.select import Float64, SelectOptions, fill, keep_pins

RESERVE = 0.2  # of the limit, for signatures of what is kept by score
LEAD_REPAIRS = 0.05  # of the limit, for signatures of what was pinned on a lead only, before anything is kept by score


def keep(
    tokenized: TokenizedPrompt,
    scores: Float64,
    pins: Pins,
    options: SelectOptions,
    *,
    repairs: bool = True,
    index: PromptIndex | None = None,
) -> tuple[Selection, OmissionReport]:
    """The selection and the check of it. scores: float64 (U,). Without `repairs` nothing is added for the check.

    Raises:
        BudgetError: see `select.keep_pins`.
    """
    known = index if index is not None else PromptIndex(tokenized.document)
    draft, findings = keep_pins(known, tokenized, scores, pins, options)
    if repairs:
        most = int(options.limit * LEAD_REPAIRS) if options.lead_share < 1 else options.limit
        close(draft, errors_only=True, reserve=max(0, options.limit - draft.n_tokens - most))
        fill_with_needs(draft, scores, reserve=int(options.limit * RESERVE))
        close(draft)
        fill_with_needs(draft, scores)
    close_gaps(draft, options.gap)
    if repairs:
        fill_with_needs(draft, scores)
    else:
        fill(draft, scores)
    close_gaps(draft, options.gap)
    if repairs:
        close(draft)
    selection = draft.selection(findings)
    return selection, check(tokenized.document, selection, index=known)
