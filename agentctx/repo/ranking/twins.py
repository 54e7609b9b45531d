"""Code that looks like what a change took from the tests. Pure.

Some changes are made everywhere alike: a renamed module, another spelling of a call, a loop written anew. Then the
lines that the tests lost stand in the code, too, or nearly so. Lines are compared as sets of neighbouring tokens, each
weighted by how rare it is (Jaccard, as in near-duplicate search: Broder, "On the resemblance and containment of
documents", 1997).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from agentctx.repo.ranking.text import Floats, Ints, rarities

MAX_LINES = 300  # lost lines that are looked for
MAX_UNITS = 3000  # units that are compared: those that share most words with the lost lines
MIN_PAIRS = 2
_TOKEN = re.compile(r"\w+|[^\w\s]")
_WORD = re.compile(r"[^\W\d]\w")

Pair = tuple[str, str]
Shape = frozenset[Pair]


@lru_cache(maxsize=1 << 15)
def shapes(text: str) -> tuple[Shape, ...]:
    """The pairs of neighbouring tokens of each line that says something."""
    return tuple(found for line in text.split("\n") if len(found := _shape(line)) >= MIN_PAIRS)


def _shape(line: str) -> Shape:
    return frozenset(pairwise(_TOKEN.findall(line))) if _WORD.search(line) else frozenset()


def lost_lines(removed: str, added: Iterable[str] = ()) -> tuple[str, ...]:
    """Lines that were taken and not put in again elsewhere, without indentation, each once."""
    kept = {line.strip() for line in added}
    lines = (line.strip() for line in removed.split("\n"))
    return tuple(dict.fromkeys(line for line in lines if line and line not in kept))[:MAX_LINES]


def twins(texts: Sequence[str], lost: Sequence[str], shared: Floats) -> tuple[Floats, Floats]:
    """Per text: how like the likest of its lines is to a lost one (0 to 1), and the weight of what the two share.

    `shared`: (texts,) how much each has in common with the lost lines, from which those to compare are chosen.
    """
    near, held = np.zeros(len(texts)), np.zeros(len(texts))
    wanted = list(dict.fromkeys(shape for line in lost for shape in shapes(line)))
    chosen = _chosen(shared)
    if not wanted or not len(chosen):
        return near, held
    found = [(unit, shape) for unit in chosen.tolist() for shape in shapes(texts[unit])]
    lines = _Lines(wanted, rarities(shape for _, shape in found))
    known: dict[Shape, tuple[float, float]] = {}
    for unit, shape in found:
        if shape not in known:
            known[shape] = lines.best(shape)
        likest, weight = known[shape]
        if likest > near[unit]:
            near[unit], held[unit] = likest, weight
    return near, held


def _chosen(shared: Floats) -> Ints:
    best = np.argsort(-np.round(shared, 6), kind="stable")[:MAX_UNITS]
    return np.sort(best[shared[best] > 0])


class _Lines:
    """The lost lines, by the pairs that they hold."""

    def __init__(self, wanted: Sequence[Shape], rarity: Mapping[Pair, float]) -> None:
        self._rarity = rarity
        most = max(rarity.values(), default=1.0)  # stands for a pair that no line of the code has
        self._weights = np.array([sum(rarity.get(pair, most) for pair in sorted(shape)) for shape in wanted])
        holders: dict[Pair, list[int]] = {}
        for number, shape in enumerate(wanted):
            for pair in shape:
                holders.setdefault(pair, []).append(number)
        self._holders = {pair: np.array(numbers, dtype=np.int64) for pair, numbers in holders.items()}

    def best(self, shape: Shape) -> tuple[float, float]:
        """Likeness and shared weight of the lost line that is most like this one."""
        pairs = sorted(pair for pair in shape if pair in self._holders)
        if not pairs:
            return 0.0, 0.0
        held = [self._holders[pair] for pair in pairs]
        weights = np.repeat([self._rarity[pair] for pair in pairs], [len(numbers) for numbers in held])
        shared = np.bincount(np.concatenate(held), weights=weights, minlength=len(self._weights))
        own = sum(self._rarity[pair] for pair in sorted(shape))
        likeness = np.round(shared / np.maximum(own + self._weights - shared, 1e-9), 6)
        at = int(np.lexsort((shared, likeness))[-1])
        return float(likeness[at]), float(shared[at])
