"""Kept units -> the SparsePrompt that the main model prefills: kept ids at their original positions. Pure.

Where the original positions exceed the model's trained context, quality collapses without any error (measured on
SmolLM2, context 8192: negative log likelihood of the prompt's tail 1.30 at 8k, 7.1 at 16k, even with 768 tokens
kept). So gaps, and only gaps, are shrunk until the prompt fits.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from agentctx.errors import BudgetError
from agentctx.prompt import Finding, Int32, Section, SparsePrompt, TokenizedPrompt, readonly


def dense(tokenized: TokenizedPrompt) -> SparsePrompt:
    """The whole prompt."""
    positions = np.arange(tokenized.n_tokens, dtype=np.int32)
    return SparsePrompt(tokenized.ids, readonly(positions), tokenized.n_tokens)


def whole_window(tokenized: TokenizedPrompt) -> SparsePrompt:
    """All that was packed, without signature lines."""
    units = [unit.index for unit in tokenized.document.units if unit.section is not Section.SIGNATURES]
    return to_sparse(tokenized, units, max_position=None)[0]


def to_sparse(
    tokenized: TokenizedPrompt, units: Collection[int], *, max_position: int | None
) -> tuple[SparsePrompt, tuple[Finding, ...]]:
    """The tokens of `units`, and always the last token of the prompt (its logits start the answer).

    Signature lines that aren't kept are no part of the prompt: they take no positions.

    Args:
        max_position: positions that the prompt may span (leave room for the answer); None = no limit.

    Raises:
        BudgetError: the kept tokens alone don't fit.
    """
    kept = _kept_tokens(tokenized, units)
    places, total = _places(tokenized, kept)
    if max_position is None or total <= max_position:
        return SparsePrompt(_take(tokenized, kept), readonly(places), total), ()
    if len(kept) > max_position:
        raise BudgetError(
            f"{len(kept)} tokens are kept, the model reads {max_position}",
            hint=f"lower --budget to {max_position} or choose a model with a longer context",
        )
    positions, longest = compact(places, total - max_position)
    finding = Finding(
        "compacted",
        "note",
        f"the prompt spans {total} positions, the model was trained on {max_position}: "
        f"{total - max_position} positions of left-out text were removed, no gap is longer than {longest}",
    )
    return SparsePrompt(_take(tokenized, kept), readonly(positions), max_position), (finding,)


def compact(positions: Int32, excess: int) -> tuple[Int32, int]:
    """Shrink gaps by `excess` positions in all, the largest first, to one common length (the one returned).

    Runs stay whole, in order, and short gaps keep their length: nearby code stays as near as it was.
    """
    gaps = np.diff(positions, prepend=-1) - 1
    cap = _gap_cap(gaps, int(gaps.sum()) - excess)
    short = np.minimum(gaps, cap)
    # The common length is a whole number: hand what it leaves over to the first gaps that were cut.
    spare = int(gaps.sum()) - excess - int(short.sum())
    short[np.flatnonzero(gaps > cap)[:spare]] += 1
    return (np.cumsum(short + 1) - 1).astype(np.int32), int(short.max())


def _gap_cap(gaps: Int32, room: int) -> int:
    """The largest c with sum(min(gap, c)) <= room."""
    if room < 0:
        raise ValueError(f"gaps hold {int(gaps.sum())} positions, {-room} fewer than must go")
    low, high = 0, int(gaps.max())
    while low < high:
        middle = (low + high + 1) // 2
        if int(np.minimum(gaps, middle).sum()) <= room:
            low = middle
        else:
            high = middle - 1
    return low


def _kept_tokens(tokenized: TokenizedPrompt, units: Collection[int]) -> Int32:
    mask = np.zeros(tokenized.n_tokens, dtype=bool)
    for unit in units:
        span = tokenized.unit_tokens(unit)
        mask[span.start : span.end] = True
    mask[-1:] = True
    return np.flatnonzero(mask).astype(np.int32)


def _places(tokenized: TokenizedPrompt, kept: Int32) -> tuple[Int32, int]:
    """int32 (K,) positions of the kept tokens, and how many there are in all."""
    there = np.ones(tokenized.n_tokens, dtype=bool)
    for unit in tokenized.document.units:
        if unit.section is Section.SIGNATURES:
            span = tokenized.unit_tokens(unit.index)
            there[span.start : span.end] = False
    there[kept] = True
    return (np.cumsum(there)[kept] - 1).astype(np.int32), int(there.sum())


def _take(tokenized: TokenizedPrompt, kept: Int32) -> Int32:
    return readonly(tokenized.ids[kept])
