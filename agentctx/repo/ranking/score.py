"""Table of features -> the chance that each chunk and each of its units is what must be edited, with reasons. Pure.

Three models: one scores chunks by themselves, the second what the first says of the chunks around, the third the
units of the best. What the training examples can't show (frames, what the user names) is added to the odds by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agentctx.repo.locate import Located
from agentctx.repo.ranking.features import Table
from agentctx.repo.ranking.model import RankModel, Trees, logistic
from agentctx.repo.ranking.parts import PARTS, part_features, with_chunks
from agentctx.repo.ranking.second import SECOND, second_order, surroundings
from agentctx.repo.ranking.text import Floats, Ints
from agentctx.source import RepoGraph

LONG = 1000  # candidates that the first model sees
SHORT = 300  # candidates whose surroundings and units are looked at
FRAME = 2.0  # added to the log odds of the deepest frame's definition, half of it to those further out
FOCUS = 8.0  # of what the user wants edited

_SIMPLE = {
    "text.all": 1.0,
    "text.changed": 0.7,
    "text.changed.part": 0.5,
    "text.all.part": 0.5,
    "walk.mass": 0.7,
    "walk.wide.mass": 0.5,
    "walk.changed.mass": 0.7,
    "name.own": 0.7,
    "name.inner": 0.2,
    "literal.string.scaled": 0.4,
    "literal.phrase.scaled": 0.4,
    "walk.only": 0.4,
    "walk.back.first": 0.2,
    "file.sum.text.changed": 0.3,
    "file.sum.walk.mass": 0.3,
    "name.module": 0.3,
    "shape.imports": 0.4,
    "shape.plain": -1.0,
    "shape.aside": -0.5,
}

# The first part of a feature's name -> what it is called in reports.
WORDS = {
    "text": "text of the evidence",
    "literal": "strings of the evidence",
    "name": "named in the evidence",
    "walk": "called from the test",
    "file": "in a file that fits",
    "class": "in a class that fits",
    "shape": "its size and form",
    "task": "the kind of task",
    "history": "edited lately or with the test",
    "near": "near what ranks high",
    "frame": "in the traceback",
    "focus": "target",
}
_GROUPS = tuple(WORDS)


def shortlist(made: Table, n: int) -> Ints:
    """The `n` candidates that a simple sum of signals puts first, by position; the models see only these."""
    total = np.zeros(len(made.rows))
    for name, weight in _SIMPLE.items():
        total += weight * made.column(name)
    best = np.argsort(-np.round(total, 6), kind="stable")[:n]
    return np.sort(best)


@dataclass(frozen=True, slots=True)
class Scores:
    """`chunk`: the chance of each candidate of the table; `units`: of units of the best, by number in
    `unit_texts`; `reasons`: per candidate, what spoke for it in log odds, strongest first."""

    chunk: Floats
    units: Mapping[int, float]
    reasons: Mapping[int, tuple[tuple[str, float], ...]]


def score(graph: RepoGraph, made: Table, located: Located, model: RankModel) -> Scores:
    """Everything beyond the short list keeps the first model's chance, beyond the long list a part of the least."""
    n = len(made.rows)
    chunk = np.zeros(n)
    if not n:
        return Scores(chunk, {}, {})
    long = shortlist(made, LONG)
    first = model.stages["chunk"].probability(aligned(made.values[long], made.names, model.stages["chunk"]))
    chunk[long] = first
    short = long[np.sort(np.argsort(-first, kind="stable")[:SHORT])]
    features = second_features(made, short, chunk[short])
    given = _given(made, short, located)
    second = model.stages["second"]
    inputs = aligned(features, (*made.names, *SECOND), second)
    raw, added = second.explained(inputs, _group_numbers(second.features), len(_GROUPS) + 1)
    better = logistic(second.scale * raw + second.shift + given.sum(axis=1))
    chunk = np.minimum(chunk, max(float(better.min()), 0.0))  # none of the rest above any of the best
    chunk[short] = better
    units, part = _units(graph, made, short, better, model.stages["part"])
    reasons = _reasons(made, short, added * second.scale, given, model.stages["chunk"])
    return Scores(chunk, dict(zip(units.tolist(), part.tolist(), strict=True)), reasons)


def second_features(made: Table, chosen: Ints, first: Floats) -> Floats:
    """The features of the second model: those of the first, and SECOND."""
    return np.hstack([made.values[chosen], second_order(surroundings(made, chosen), first)])


def aligned(values: Floats, names: Sequence[str], stage: Trees) -> Floats:
    """The columns in the order in which the model wants them.

    Raises:
        ValueError: the model wants a feature that there isn't.
    """
    if tuple(names) == stage.features:
        return values
    place = {name: n for n, name in enumerate(names)}
    return values[:, [place[name] for name in stage.features]]


def _given(made: Table, chosen: Ints, located: Located) -> Floats:
    """(chosen, 2): log odds for frames and for targets of the user. Deepest frames come first."""
    frames: dict[int, float] = {}
    for depth, symbol in enumerate(located.frames):
        node = made.nodes.by_symbol.get(symbol)
        if node is not None:
            frames.setdefault(node, FRAME / (1 if depth == 0 else 2))
    wanted = located.targets if located.targets != located.frames[:1] else ()
    focus = {made.nodes.by_symbol[symbol] for symbol in wanted if symbol in made.nodes.by_symbol}
    nodes = made.rows[chosen].tolist()
    return np.array([[frames.get(node, 0.0), FOCUS * (node in focus)] for node in nodes]).reshape(-1, 2)


def _units(graph: RepoGraph, made: Table, short: Ints, chunks: Floats, stage: Trees) -> tuple[Ints, Floats]:
    units, features = part_features(graph, made, short)
    place = np.full(len(made.rows), -1, dtype=np.int64)
    place[short] = np.arange(len(short))
    of = place[made.unit_rows[units]]
    return units, stage.probability(aligned(with_chunks(features, of, chunks), PARTS, stage))


# ---------------------------------------------------------------- reasons


def _reasons(
    made: Table, short: Ints, added: Floats, given: Floats, first: Trees
) -> dict[int, tuple[tuple[str, float], ...]]:
    """`added`: what each group of features added to the second model's odds; what the first score added there is
    shared among the groups that had raised that score."""
    n = len(_GROUPS)
    values = aligned(made.values[short], made.names, first)
    of_first = first.explained(values, _group_numbers(first.features), n + 1)[1]
    raised = np.maximum(of_first[:, :n], 0.0)
    share = raised / np.maximum(raised.sum(axis=1, keepdims=True), 1e-9)
    added[:, :n] += share * np.maximum(added[:, n:], 0.0)
    added[:, _GROUPS.index("frame")] = given[:, 0]
    added[:, _GROUPS.index("focus")] = given[:, 1]
    added = np.round(added, 3)
    out = {}
    for row, gains in zip(short.tolist(), added.tolist(), strict=True):
        found = [(WORDS[group], gain) for group, gain in zip(_GROUPS, gains, strict=False) if gain > 0]
        out[row] = tuple(sorted(found, key=lambda pair: (-pair[1], pair[0])))
    return out


def _group_numbers(names: Sequence[str]) -> Ints:
    """Of each feature the number of its group; those about the first score are one more."""
    groups = [name.partition(".")[0] for name in names]
    return np.array([_GROUPS.index(group) if group in WORDS else len(_GROUPS) for group in groups], dtype=np.int64)
