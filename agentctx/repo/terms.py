"""Words of code and their parts, and BM25 over them. Pure.

BM25 after Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), with k1 = 1.2 and b = 0.75.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

_WORD = re.compile(r"[^\W\d]\w*")
_PART = re.compile(r"_|(?<=[a-z0-9])(?=[A-Z])")
_K1, _B = 1.2, 0.75


@lru_cache(maxsize=1 << 16)
def parts(word: str) -> tuple[str, ...]:
    """The word and, where it has several, its parts: `parse_args` -> parse_args, parse, args. Lower case."""
    found = [part for part in _PART.split(word) if part]
    return (word.lower(), *(part.lower() for part in found)) if found != [word] else (word.lower(),)


def words(text: str) -> list[str]:
    return _WORD.findall(text)


def query_terms(text: str) -> frozenset[str]:
    """All terms of a query; how often one occurs doesn't count."""
    return frozenset(term for word in set(words(text)) for term in parts(word))


@dataclass(frozen=True, slots=True)
class Bag:
    """A document as far as a query is concerned: how often each wanted term occurs, and its length in terms."""

    counts: Mapping[str, int]
    length: int


def bag(text: str, wanted: frozenset[str]) -> Bag:
    """Only `wanted` terms are counted: everything else just makes the document longer."""
    counts: dict[str, int] = {}
    length = 0
    for word, n in Counter(words(text)).items():
        terms = parts(word)
        length += n * len(terms)
        for term in terms:
            if term in wanted:
                counts[term] = counts.get(term, 0) + n
    return Bag(counts, length)


def bm25(documents: Sequence[Bag], query: frozenset[str]) -> list[float]:
    """A score >= 0 for each document; the bags must have counted the query's terms."""
    n = len(documents)
    average = (sum(document.length for document in documents) / n if n else 0.0) or 1.0
    found: Counter[str] = Counter()
    for document in documents:
        found.update(document.counts.keys() & query)
    weights = {term: math.log(1 + (n - df + 0.5) / (df + 0.5)) for term, df in found.items()}
    return [_score(document, document.length / average, weights) for document in documents]


def _score(document: Bag, length: float, weights: Mapping[str, float]) -> float:
    norm = _K1 * (1 - _B + _B * length)
    # fsum: the terms come in no fixed order, and the sum must not depend on it.
    return math.fsum(
        weights[term] * n * (_K1 + 1) / (n + norm) for term, n in document.counts.items() if term in weights
    )
