"""What scorers are compared with: chance, and the words of the evidence."""

from __future__ import annotations

import numpy as np

from agentctx.prompt import Section, TokenizedPrompt
from agentctx.repo.terms import bag, bm25, query_terms
from agentctx.spec.select import Float64

_ASKING = (Section.TESTS, Section.LOG, Section.REQUEST)


def random_scores(tokenized: TokenizedPrompt, seed: int) -> Float64:
    """float64 (U,)"""
    return np.random.default_rng(seed).random(len(tokenized.document.units))


def bm25_scores(tokenized: TokenizedPrompt) -> Float64:
    """float64 (U,): BM25 of tests, log and request against the text of the definition that each unit is part of; units
    outside of definitions by themselves."""
    document = tokenized.document
    asked = b"\n".join(document.unit_text(u.index) for u in document.units if u.section in _ASKING)
    query = query_terms(asked.decode("utf-8", "replace"))
    groups: dict[str, list[int]] = {}
    for unit in document.units:
        if unit.section not in _ASKING:
            groups.setdefault(unit.symbol or f"#{unit.index}", []).append(unit.index)
    texts = [b"".join(document.unit_text(u) for u in units).decode("utf-8", "replace") for units in groups.values()]
    out = np.zeros(len(document.units))
    for units, score in zip(groups.values(), bm25([bag(text, query) for text in texts], query), strict=True):
        out[units] = score
    return out
