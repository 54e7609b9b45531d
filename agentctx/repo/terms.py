"""Words of code and their parts, and BM25 over them. Pure.

BM25 after Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), with k1 = 1.2 and b = 0.75.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
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


def term_counts(text: str) -> Counter[str]:
    """How often each term occurs in a document."""
    counts: Counter[str] = Counter()
    for word, n in Counter(words(text)).items():
        for term in parts(word):
            counts[term] += n
    return counts


def bm25(documents: Sequence[Mapping[str, int]], lengths: Sequence[int], query: frozenset[str]) -> list[float]:
    """A score >= 0 for each document."""
    n = len(documents)
    average = sum(lengths) / n if n else 1.0
    found = {term: sum(1 for document in documents if term in document) for term in sorted(query)}
    weights = {t: math.log(1 + (n - df + 0.5) / (df + 0.5)) for t, df in found.items() if df}
    return [_score(d, length / (average or 1.0), weights) for d, length in zip(documents, lengths, strict=True)]


def _score(document: Mapping[str, int], length: float, weights: Mapping[str, float]) -> float:
    norm = _K1 * (1 - _B + _B * length)
    terms = document.keys() & weights.keys() if len(document) < len(weights) else weights.keys() & document.keys()
    return math.fsum(weights[t] * document[t] * (_K1 + 1) / (document[t] + norm) for t in terms)
