"""What all files of a tree hold, as a few large arrays: which match a text, mention a name, define a name. Pure.

It answers for files whose syntax was not decoded. BM25 as in `terms`, with files as the documents; the answers are in
order of paths, or of scores with paths breaking ties, and depend on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from agentctx.repo.catalog_row import CatalogRow, name_hash, term_hash
from agentctx.source import SymbolKind

_K1, _B = 1.2, 0.75
_U32 = np.dtype("<u4")
_MASK = 0xFFFF
Hashes = npt.NDArray[np.uint32]
Places = npt.NDArray[np.int64]


class _Column:
    """Hashes of all files, one after the other."""

    def __init__(self, parts: Sequence[bytes]) -> None:
        self.values: Hashes = np.frombuffer(b"".join(parts), _U32)
        lengths = np.array([len(part) // 4 for part in parts], np.int64)
        self.ends: Places = np.cumsum(lengths)

    def find(self, wanted: Hashes) -> tuple[Places, Places]:
        """(positions whose value is one of `wanted`, the file of each), in order."""
        table = np.zeros(_MASK + 1, np.bool_)  # most values fail on their low bits: one look-up each
        table[wanted & _MASK] = True
        near = np.flatnonzero(table[self.values & _MASK])
        hits = near[np.isin(self.values[near], wanted)]
        return hits, np.searchsorted(self.ends, hits, side="right")


class Catalog:
    """Made of the rows of a tree, by path."""

    def __init__(self, rows: Mapping[str, CatalogRow]) -> None:
        self.paths: tuple[str, ...] = tuple(sorted(rows))
        ordered = [rows[path] for path in self.paths]
        self._terms = _Column([row.terms for row in ordered])
        self._defs = _Column([row.defs for row in ordered])
        self._counts = np.frombuffer(b"".join(row.counts for row in ordered), np.uint8)
        self._lengths = np.array([row.n_words for row in ordered], np.float64)

    def scores(self, terms: Iterable[str]) -> npt.NDArray[np.float64]:
        """BM25 of each file, in order of `paths`. `terms` as `terms.query_terms` gives them."""
        wanted = _hashes(term_hash(term) for term in terms)
        hits, files = self._terms.find(wanted)
        if not len(hits):
            return np.zeros(len(self.paths))
        which = np.searchsorted(wanted, self._terms.values[hits])
        found_in = np.bincount(which, minlength=len(wanted))
        weights = np.log(1 + (len(self.paths) - found_in + 0.5) / (found_in + 0.5))
        norm = _K1 * (1 - _B + _B * self._lengths / (self._lengths.mean() or 1.0))
        often = self._counts[hits].astype(np.float64)
        parts = weights[which] * often * (_K1 + 1) / (often + norm[files])
        return np.bincount(files, weights=parts, minlength=len(self.paths)).astype(np.float64)

    def best(self, terms: Iterable[str], limit: int) -> tuple[str, ...]:
        """The files that match a text best, best first; none that doesn't match."""
        scores = self.scores(terms)
        order = np.argsort(-scores, kind="stable")[:limit]
        return tuple(self.paths[at] for at in order if scores[at] > 0)

    def mentioning(self, name: str) -> tuple[str, ...]:
        """Files in which a name occurs as a word, whatever its case."""
        _, files = self._terms.find(_hashes([term_hash(name.lower())]))
        return tuple(self.paths[at] for at in files)

    def defining(self, names: Iterable[str]) -> dict[str, tuple[tuple[str, SymbolKind], ...]]:
        """Name -> (path, kind) of its definitions, for the names that have any."""
        by_hash = {name_hash(name, kind): (name, kind) for name in sorted(set(names)) for kind in SymbolKind}
        hits, files = self._defs.find(_hashes(by_hash))
        out: dict[str, list[tuple[str, SymbolKind]]] = {}
        for value, at in zip(self._defs.values[hits].tolist(), files.tolist(), strict=True):
            name, kind = by_hash[value]
            out.setdefault(name, []).append((self.paths[at], kind))
        return {name: tuple(out[name]) for name in sorted(out)}


def _hashes(values: Iterable[int]) -> Hashes:
    return np.unique(np.fromiter(values, _U32))
