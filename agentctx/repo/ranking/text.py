"""Words of many documents against several queries at once: BM25 in numpy. Pure.

BM25 after Robertson and Zaragoza (2009), k1 = 1.2, b = 0.75, as in `repo.terms`; a query's terms count once.
Sums run in the order of documents and sorted terms, so that they don't depend on hash seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from agentctx.repo.terms import parts, words

Floats = npt.NDArray[Any]  # of float64; numpy's types lose that on `bincount`, `maximum` and `hstack`
Ints = npt.NDArray[np.int64]
T = TypeVar("T")
_K1, _B = 1.2, 0.75


@lru_cache(maxsize=1 << 14)
def counted(text: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The distinct words of a text, and the count of each; kept, because trees that follow each other share most
    units."""
    found = Counter(words(text))
    return tuple(found), tuple(found.values())


@dataclass(frozen=True, slots=True)
class Counts:
    """Occurrences of the wanted terms: `counts[i]` of term `cols[i]` in document `rows[i]`, sorted by both."""

    rows: Ints
    cols: Ints
    counts: Floats
    lengths: Floats  # terms of each document, wanted or not
    n_terms: int

    def grouped(self, group: Ints, n_groups: int) -> Counts:
        """Documents joined: document i becomes part of `group[i]`."""
        keys = group[self.rows] * max(self.n_terms, 1) + self.cols
        distinct, where = np.unique(keys, return_inverse=True)
        counts = np.bincount(where, weights=self.counts, minlength=len(distinct))
        rows, cols = np.divmod(distinct, max(self.n_terms, 1))
        lengths = np.bincount(group, weights=self.lengths, minlength=n_groups)
        return Counts(rows, cols, counts, lengths, self.n_terms)

    def idf(self) -> Floats:
        """(n_terms,): of each term among these documents."""
        found = np.bincount(self.cols, minlength=self.n_terms)
        rarity: Floats = np.log(1 + (len(self.lengths) - found + 0.5) / (found + 0.5))
        return rarity


def count_terms(texts: Sequence[str], wanted: Sequence[str]) -> Counts:
    """`wanted`: distinct terms in the order of their numbers."""
    found = [counted(text) for text in texts]
    n_words = np.array([len(names) for names, _ in found], dtype=np.int64)
    flat = list(chain.from_iterable(names for names, _ in found))
    times = np.fromiter(chain.from_iterable(counts for _, counts in found), dtype=np.float64, count=len(flat))
    vocabulary = {word: n for n, word in enumerate(dict.fromkeys(flat))}
    ids = np.fromiter(map(vocabulary.__getitem__, flat), dtype=np.int64, count=len(flat))
    n_terms, starts, terms = _terms_of(vocabulary, wanted)
    row = np.repeat(np.arange(len(texts)), n_words)
    lengths = np.bincount(row, weights=times * n_terms[ids], minlength=len(texts))
    held = (starts[1:] - starts[:-1])[ids]  # wanted terms of each occurrence
    which = np.repeat(np.arange(len(ids)), held)
    offset = np.arange(len(which)) - np.repeat(np.cumsum(held) - held, held)
    keys = row[which] * max(len(wanted), 1) + terms[starts[ids[which]] + offset]
    distinct, where = np.unique(keys, return_inverse=True)
    counts = np.bincount(where, weights=times[which], minlength=len(distinct))
    rows, cols = np.divmod(distinct, max(len(wanted), 1))
    return Counts(rows, cols, counts, lengths, len(wanted))


def _terms_of(vocabulary: Iterable[str], wanted: Sequence[str]) -> tuple[Ints, Ints, Ints]:
    """Of each word how many terms it is; where its wanted ones begin in the last array, and these."""
    number = {term: n for n, term in enumerate(wanted)}
    all_parts = [parts(word) for word in vocabulary]
    mine = [[number[term] for term in terms if term in number] for terms in all_parts]
    starts = np.cumsum([0, *map(len, mine)], dtype=np.int64)
    terms = np.fromiter(chain.from_iterable(mine), dtype=np.int64, count=int(starts[-1]))
    return np.array([len(terms) for terms in all_parts], dtype=np.int64), starts, terms


def mask_of(terms: frozenset[str], wanted: Sequence[str]) -> npt.NDArray[np.bool_]:
    """(wanted,): which of the wanted terms a query has."""
    return np.array([term in terms for term in wanted], dtype=np.bool_)


def rarities(documents: Iterable[Iterable[T]]) -> dict[T, float]:
    """The inverse document frequency of each thing; a document holds a thing once."""
    found = [tuple(things) for things in documents]
    counts = Counter(chain.from_iterable(found))
    n = len(found)
    return {thing: float(np.log(1 + (n - count + 0.5) / (count + 0.5))) for thing, count in counts.items()}


def bm25(documents: Counts, query: npt.NDArray[np.bool_], idf: Floats) -> Floats:
    """(documents,): `query` is a mask of terms."""
    average = float(documents.lengths.mean()) if len(documents.lengths) else 1.0
    norm = _K1 * (1 - _B + _B * documents.lengths / (average or 1.0))
    gains = idf[documents.cols] * documents.counts * (_K1 + 1) / (documents.counts + norm[documents.rows])
    gains = np.where(query[documents.cols], gains, 0.0)
    return np.bincount(documents.rows, weights=gains, minlength=len(documents.lengths))


def coverage(documents: Counts, query: npt.NDArray[np.bool_], idf: Floats) -> tuple[Floats, Floats]:
    """Per document the share of the query's weight that it holds, and the weight of the rarest term held."""
    gains = np.where(query[documents.cols], idf[documents.cols], 0.0)
    held = np.bincount(documents.rows, weights=gains, minlength=len(documents.lengths))
    rarest = np.zeros(len(documents.lengths))
    np.maximum.at(rarest, documents.rows, gains)
    total = float(idf[query].sum())
    return held / total if total else held, rarest
