"""Strings of the evidence that stand in the code: error messages, options, keys. Pure.

A message is rarely the same text in a test and in the code (placeholders, wrapping), so pairs of neighbouring words
are compared beside whole strings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from agentctx.repo.ranking.text import Floats, rarities

_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"' r"|'((?:[^'\\\n]|\\.)*)'" r"|`((?:[^`\\\n]|\\.)*)`")
_HOLE = re.compile(r"\$?\{[^{}]*\}|%[-+ #0-9.]*[a-zA-Z]|\\[nrt]")
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"(?<![\w.])\d{3,}(?![\w.])")
MAX_LENGTH = 200

Pair = tuple[str, str]


@lru_cache(maxsize=1 << 14)
def literals(text: str) -> tuple[str, ...]:
    """Distinct quoted strings and numbers of three digits and more, as written."""
    found = (next(part for part in match.groups() if part is not None) for match in _STRING.finditer(text))
    strings = (one for one in found if 1 < len(one) <= MAX_LENGTH)
    return tuple(dict.fromkeys([*strings, *_NUMBER.findall(text)]))


@lru_cache(maxsize=1 << 15)
def word_pairs(text: str) -> frozenset[Pair]:
    """Neighbouring words in lower case; not across a placeholder."""
    return frozenset(
        pair for piece in _HOLE.split(text) for pair in pairwise(word.lower() for word in _WORD.findall(piece))
    )


def overlap(texts: Sequence[str], strings: Iterable[str], lines: Iterable[str]) -> tuple[Floats, Floats]:
    """Per text: the weight of the evidence's strings that are literals of it, and of word pairs that they share.

    `strings`: literals of tests; `lines`: error lines, which count by their word pairs. The weight of a thing is
    its inverse document frequency among the texts that hold it.
    """
    equal = frozenset(strings)
    pairs = frozenset(pair for text in (*equal, *lines) for pair in word_pairs(text))
    held = [literals(text) for text in texts]
    same = [tuple(one for one in found if one in equal) for found in held]
    shared = [tuple(sorted({pair for one in found for pair in word_pairs(one)} & pairs)) for found in held]
    return _weights(same), _weights(shared)


def _weights(found: Sequence[tuple[object, ...]]) -> Floats:
    idf = rarities(found)
    return np.array([sum(idf[thing] for thing in things) for things in found], dtype=np.float64)
