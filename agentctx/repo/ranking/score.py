"""Table of features -> the chance that each chunk and each of its units is what must be edited, with reasons. Pure.

Two models: one scores chunks, the other the units of the best. What the training examples can't show (frames, what
the user names) is added to the odds by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agentctx.repo.locate import Located
from agentctx.repo.ranking.features import Table
from agentctx.repo.ranking.model import RankModel, Trees, logistic
from agentctx.repo.ranking.parts import PARTS, part_features, with_chunks
from agentctx.repo.ranking.text import Floats, Ints
from agentctx.source import RepoGraph

LONG = 1000  # candidates that the model of chunks sees
SHORT = 300  # candidates that are explained, and whose units are looked at
FRAME = 2.0  # added to the log odds of the deepest frame's definition; frames further out tell no more than calls do
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
    "twin.near": 0.5,
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
    "twin": "like lines that the tests lost",
    "name": "named in the evidence",
    "walk": "called from the test",
    "file": "in a file that fits",
    "class": "in a class that fits",
    "shape": "its size and form",
    "task": "the kind of task",
    "history": "edited lately or with the test",
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
    """What is beyond the long list has no chance at all."""
    chunk = np.zeros(len(made.rows))
    if not len(made.rows):
        return Scores(chunk, {}, {})
    stage = model.stages["chunk"]
    long = shortlist(made, LONG)
    given = _given(made, long, located)
    odds = stage.scale * stage.raw(aligned(made.values[long], made.names, stage)) + stage.shift + given.sum(axis=1)
    chunk[long] = logistic(odds)
    best = np.sort(np.argsort(-chunk[long], kind="stable")[:SHORT])
    short = long[best]
    units, part = _units(graph, made, short, chunk[short], model.stages["part"])
    reasons = _reasons(made, short, given[best], stage)
    return Scores(chunk, dict(zip(units.tolist(), part.tolist(), strict=True)), reasons)


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
    """(chosen, 2): log odds for the deepest frame and for targets of the user."""
    frames = {made.nodes.by_symbol[symbol] for symbol in located.frames[:1] if symbol in made.nodes.by_symbol}
    wanted = located.targets if located.targets != located.frames[:1] else ()
    focus = {made.nodes.by_symbol[symbol] for symbol in wanted if symbol in made.nodes.by_symbol}
    nodes = made.rows[chosen].tolist()
    return np.array([[FRAME * (node in frames), FOCUS * (node in focus)] for node in nodes]).reshape(-1, 2)


def _units(graph: RepoGraph, made: Table, short: Ints, chunks: Floats, stage: Trees) -> tuple[Ints, Floats]:
    units, features = part_features(graph, made, short)
    place = np.full(len(made.rows), -1, dtype=np.int64)
    place[short] = np.arange(len(short))
    of = place[made.unit_rows[units]]
    return units, stage.probability(aligned(with_chunks(features, of, chunks), PARTS, stage))


# ---------------------------------------------------------------- reasons


def _reasons(made: Table, short: Ints, given: Floats, stage: Trees) -> dict[int, tuple[tuple[str, float], ...]]:
    """What each group of features added to the odds on the way through the trees."""
    values = aligned(made.values[short], made.names, stage)
    added = stage.explained(values, _group_numbers(stage.features), len(_GROUPS))[1] * stage.scale
    added[:, _GROUPS.index("frame")] = given[:, 0]
    added[:, _GROUPS.index("focus")] = given[:, 1]
    added = np.round(added, 3)
    out = {}
    for row, gains in zip(short.tolist(), added.tolist(), strict=True):
        found = [(WORDS[group], gain) for group, gain in zip(_GROUPS, gains, strict=True) if gain > 0]
        out[row] = tuple(sorted(found, key=lambda pair: (-pair[1], pair[0])))
    return out


def _group_numbers(names: Sequence[str]) -> Ints:
    """Of each feature the number of its group."""
    return np.array([_GROUPS.index(name.partition(".")[0]) for name in names], dtype=np.int64)
