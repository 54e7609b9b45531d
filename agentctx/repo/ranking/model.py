"""The learned model: boosted trees in a data file, evaluated with numpy. Deterministic on every machine.

The file is JSON: `{"schema": 1, "stages": {name: stage}, "trained": {...}}`; a stage is `{"features": [names],
"scale": a, "shift": b, "trees": [tree]}`, a tree lists of its nodes in preorder: `f` the feature (-1: a leaf) and `v`
the value (a leaf's output, or the mean output below) of each node; of each that is no leaf `t` the threshold (what is
at most that goes left, to the next node), `r` the number of the right child, `n` 1 where an unknown value goes left.
The probability is the logistic function of scale * (sum of outputs) + shift.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agentctx.errors import ModelUnavailable
from agentctx.repo.ranking.text import Floats, Ints

SCHEMA = 1
STAGES = ("chunk", "second", "part")
DIGITS = 9
_BLOCK = 1 << 20  # rows times trees that are evaluated at once


@dataclass(frozen=True, slots=True)
class Trees:
    """All trees of a stage, one after the other; `right` and `roots` are numbers of nodes."""

    features: tuple[str, ...]
    scale: float
    shift: float
    roots: Ints
    feature: Ints
    threshold: Floats
    right: Ints
    unknown_left: npt.NDArray[np.bool_]
    value: Floats

    def raw(self, values: Floats) -> Floats:
        """(rows,): sum of the trees' outputs. `values`: (rows, features), NaN where unknown."""
        return self._walk(values, None, 0)[0]

    def probability(self, values: Floats) -> Floats:
        return logistic(self.scale * self.raw(values) + self.shift)

    def contributions(self, values: Floats, group: Ints, n_groups: int) -> Floats:
        """(rows, n_groups): what each group of features added to the outputs along the paths that were taken."""
        return self._walk(values, group, n_groups)[1] * self.scale

    def _walk(self, values: Floats, group: Ints | None, n_groups: int) -> tuple[Floats, Floats]:
        if values.ndim != 2 or values.shape[1] != len(self.features):
            raise ValueError(f"{values.shape} values for {len(self.features)} features")
        total, added = np.zeros(len(values)), np.zeros((len(values), n_groups))
        step = max(1, _BLOCK // max(len(self.roots), 1))
        for start in range(0, len(values), step):
            block = slice(start, start + step)
            total[block], added[block] = self._block(values[block], group, n_groups)
        return total, added

    def _block(self, values: Floats, group: Ints | None, n_groups: int) -> tuple[Floats, Floats]:
        rows = np.arange(len(values))[:, None]
        at = np.broadcast_to(self.roots, (len(values), len(self.roots))).copy()
        added = np.zeros((len(values), n_groups))
        while True:
            feature = self.feature[at]
            inner = feature >= 0
            if not inner.any():
                break
            x = values[rows, np.maximum(feature, 0)]
            left = np.where(np.isnan(x), self.unknown_left[at], x <= self.threshold[at])
            following = np.where(inner, np.where(left, at + 1, self.right[at]), at)
            if group is not None:
                gain = np.where(inner, self.value[following] - self.value[at], 0.0)
                where = rows * n_groups + group[np.maximum(feature, 0)]
                added += np.bincount(where.ravel(), weights=gain.ravel(), minlength=added.size).reshape(added.shape)
            at = following
        # One after the other: numpy's own sum adds in an order that depends on the machine.
        outputs = np.add.accumulate(self.value[at], axis=1) if len(self.roots) else np.zeros((len(values), 1))
        return outputs[:, -1], added


def logistic(x: Floats) -> Floats:
    chance: Floats = np.round(1.0 / (1.0 + np.exp(-np.clip(x, -40.0, 40.0))), DIGITS)
    return chance


@dataclass(frozen=True, slots=True)
class RankModel:
    """`stages`: those of STAGES. `trained`: what is said of it: sources, commits, options."""

    stages: Mapping[str, Trees]
    trained: Mapping[str, Any]
    name: str


@cache
def shipped() -> RankModel:
    """The model that comes with the program."""
    return from_json(shipped_text(), "built in")


def shipped_text() -> str:
    return (files("agentctx.repo.ranking") / "model.json").read_text(encoding="utf-8")


def load(path: Path) -> RankModel:
    """A model of `agentctx bench train-rank`.

    Raises:
        ModelUnavailable: there is none, or it is damaged, or of other features than this version has.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ModelUnavailable(
            f"can't read the ranking model {path}: {reason}",
            hint="`agentctx bench train-rank --repo DIR --out FILE` makes one; else the built-in one is used",
        ) from error
    return from_json(text, str(path))


def from_json(text: str, name: str) -> RankModel:
    """Raises: ModelUnavailable, naming what is wrong."""
    try:
        raw = json.loads(text)
        if raw["schema"] != SCHEMA:
            raise ValueError(f"its format is {raw['schema']}, this version reads {SCHEMA}")
        stages = {stage: _stage(raw["stages"][stage]) for stage in STAGES}
        return RankModel(stages, dict(raw["trained"]), name)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ModelUnavailable(
            f"the ranking model ({name}) is damaged: {error if isinstance(error, ValueError) else repr(error)}",
            hint="train it again with `agentctx bench train-rank`, or take the option rank-model away",
        ) from error


def _stage(raw: Mapping[str, Any]) -> Trees:
    features = tuple(str(name) for name in raw["features"])
    trees = [_tree(tree, len(features)) for tree in raw["trees"]]
    starts = np.cumsum([0, *(len(tree[0]) for tree in trees)])[:-1].astype(np.int64)
    joined: list[npt.NDArray[Any]] = [
        np.concatenate([tree[n] for tree in trees]) if trees else np.zeros(0) for n in range(5)
    ]
    sizes = [len(tree[0]) for tree in trees]
    return Trees(
        features=features,
        scale=_finite(raw["scale"]),
        shift=_finite(raw["shift"]),
        roots=starts,
        feature=joined[0].astype(np.int64),
        threshold=joined[1].astype(np.float64),
        right=(joined[2] + np.repeat(starts, sizes)).astype(np.int64),
        unknown_left=joined[3].astype(np.bool_),
        value=joined[4].astype(np.float64),
    )


def _finite(value: Any) -> float:
    if not np.isfinite(float(value)):
        raise ValueError(f"{value} is no number")
    return float(value)


def _tree(raw: Mapping[str, Sequence[Any]], n_features: int) -> tuple[npt.NDArray[Any], ...]:
    """Five arrays over all nodes; every node but the root must be reached once, or evaluation might not end."""
    feature, value = np.array(raw["f"], dtype=np.int64), np.array(raw["v"], dtype=np.float64)
    n, inner = len(feature), np.flatnonzero(feature >= 0)
    of_inner = [np.array(raw[key], dtype=np.float64) for key in "trn"]
    if not n or len(value) != n or any(len(one) != len(inner) for one in of_inner):
        raise ValueError("lists of a tree have different lengths")
    right = of_inner[1].astype(np.int64)
    ends = np.concatenate([inner + 1, right])
    if feature.min() < -1 or feature.max() >= n_features or not (right > inner + 1).all():
        raise ValueError("a tree names a feature or a node that isn't there")
    if not np.array_equal(np.sort(ends), np.arange(1, n)):
        raise ValueError("the nodes of a tree are not in order")
    if not (np.isfinite(of_inner[0]).all() and np.isfinite(value).all()):
        raise ValueError("a tree holds a value that is no number")
    spread = [np.zeros(n) for _ in of_inner]
    for all_nodes, inner_ones in zip(spread, of_inner, strict=True):
        all_nodes[inner] = inner_ones
    return feature, *spread, value
