"""What the catalog keeps of one file: hashes of its terms and of the names that it defines. Pure; needs no numpy.

Hashes are CRC-32: the same on every machine, and a collision only brings a file into the working set that need not
be there.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from agentctx.repo.terms import parts, words
from agentctx.source import Symbol, SymbolKind

MAX_COUNT = 255
KIND_MASK = 7  # the low bits of a definition's hash say its kind
KINDS = tuple(SymbolKind)


class CatalogRow(NamedTuple):
    """`terms`: uint32 little endian, ascending; `counts`: one byte each; `defs`: uint32; `n_words`: length in terms."""

    terms: bytes
    counts: bytes
    defs: bytes
    n_words: int


NOTHING = CatalogRow(b"", b"", b"", 0)


def term_hash(term: str) -> int:
    """Of a term as `terms.parts` gives it: lower case."""
    return zlib.crc32(term.encode("utf-8", "surrogatepass"))


def name_hash(name: str, kind: SymbolKind) -> int:
    """Of a defined name (case matters) with its kind in the low bits."""
    return zlib.crc32(name.encode("utf-8", "surrogatepass")) & ~KIND_MASK | KINDS.index(kind)


def catalog_row(data: bytes, symbols: Iterable[Symbol]) -> CatalogRow:
    """The row of a file's bytes and of the definitions in it."""
    counts: dict[int, int] = {}
    length = 0
    for word, n in Counter(words(data.decode("utf-8", "replace"))).items():
        hashes = _hashes(word)
        length += n * len(hashes)
        for one in hashes:
            counts[one] = counts.get(one, 0) + n
    ordered = sorted(counts)
    few = bytes(min(counts[one], MAX_COUNT) for one in ordered)
    return CatalogRow(packed(ordered), few, packed(sorted({name_hash(s.name, s.kind) for s in symbols})), length)


@lru_cache(maxsize=1 << 16)
def _hashes(word: str) -> tuple[int, ...]:
    return tuple(term_hash(term) for term in parts(word))


def packed(numbers: Iterable[int]) -> bytes:
    """uint32, little endian."""
    made = array("I", numbers)
    if sys.byteorder == "big":
        made.byteswap()
    return made.tobytes()
