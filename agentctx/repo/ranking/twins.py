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

from agentctx.repo.ranking.text import Floats, Ints

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
    rarity = _rarity([shape for _, shape in found])
    known: dict[Shape, tuple[float, float]] = {}
    holders = _holders(wanted)
    for unit, shape in found:
        if shape not in known:
            known[shape] = _best(shape, wanted, holders, rarity)
        likest, weight = known[shape]
        if likest > near[unit]:
            near[unit], held[unit] = likest, weight
    return near, held


def _chosen(shared: Floats) -> Ints:
    best = np.argsort(-np.round(shared, 6), kind="stable")[:MAX_UNITS]
    return np.sort(best[shared[best] > 0])


def _rarity(lines: Sequence[Shape]) -> dict[Pair, float]:
    """Inverse document frequency among the lines."""
    counts: dict[Pair, int] = {}
    for shape in lines:
        for pair in shape:
            counts[pair] = counts.get(pair, 0) + 1
    n = len(lines)
    return {pair: float(np.log(1 + (n - count + 0.5) / (count + 0.5))) for pair, count in counts.items()}


def _holders(wanted: Sequence[Shape]) -> dict[Pair, list[int]]:
    out: dict[Pair, list[int]] = {}
    for number, shape in enumerate(wanted):
        for pair in shape:
            out.setdefault(pair, []).append(number)
    return out


def _best(
    shape: Shape, wanted: Sequence[Shape], holders: Mapping[Pair, Sequence[int]], rarity: Mapping[Pair, float]
) -> tuple[float, float]:
    """Likeness and shared weight of the wanted line that is most like this one."""
    most = max(rarity.values(), default=1.0)  # stands for a pair that no line of the code has
    common: dict[int, list[float]] = {}
    for pair in sorted(shape):
        for number in holders.get(pair, ()):
            common.setdefault(number, []).append(rarity[pair])
    own = sum(rarity[pair] for pair in sorted(shape))
    best = (0.0, 0.0)
    for number, weights in common.items():
        shared = sum(weights)
        other = sum(rarity.get(pair, most) for pair in sorted(wanted[number]))
        union = own + other - shared
        best = max(best, (round(shared / union, 6) if union > 0 else 0.0, shared))
    return best
