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
STAGES = ("chunk", "part")
DIGITS = 9
_BLOCK = 1 << 20  # rows times trees that are evaluated at once


@dataclass(frozen=True, slots=True)
class Trees:
    """All trees of a stage, one after the other; `left`, `right` and `roots` are numbers of nodes.

    A leaf is its own child, and asks for feature 0; after `depth` steps every row is in a leaf.
    """

    features: tuple[str, ...]
    scale: float
    shift: float
    roots: Ints
    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    unknown_left: npt.NDArray[np.bool_]
    value: Floats
    depth: int

    def raw(self, values: Floats) -> Floats:
        """(rows,): sum of the trees' outputs. `values`: (rows, features), NaN where unknown."""
        return self.explained(values, None, 0)[0]

    def probability(self, values: Floats) -> Floats:
        return logistic(self.scale * self.raw(values) + self.shift)

    def explained(self, values: Floats, group: Ints | None, n_groups: int) -> tuple[Floats, Floats]:
        """`raw`, and (rows, n_groups): what each group of features added to it along the paths that were taken.

        `group`: of each feature its number.
        """
        if values.ndim != 2 or values.shape[1] != len(self.features):
            raise ValueError(f"{values.shape} values for {len(self.features)} features")
        total, added = np.zeros(len(values)), np.zeros((len(values), n_groups))
        step = max(1, _BLOCK // max(len(self.roots), 1))
        for start in range(0, len(values), step):
            block = slice(start, start + step)
            total[block], added[block] = self._block(values[block], group, n_groups)
        return total, added

    def _block(self, values: Floats, group: Ints | None, n_groups: int) -> tuple[Floats, Floats]:
        flat, rows = values.ravel(), np.arange(len(values))[:, None]
        unknown = np.isnan(flat)
        at = np.repeat(self.roots[None, :], len(values), axis=0)
        added = np.zeros((len(values), n_groups))
        for _ in range(self.depth):
            feature = self.feature.take(at)
            where = feature + rows * values.shape[1]
            goes_left = flat.take(where) <= self.threshold.take(at)
            if unknown.any():
                goes_left |= unknown.take(where) & self.unknown_left.take(at)
            following = np.where(goes_left, self.left.take(at), self.right.take(at))
            if group is not None:
                gain = self.value.take(following) - self.value.take(at)
                slots = group.take(feature) + rows * n_groups
                added += np.bincount(slots.ravel(), weights=gain.ravel(), minlength=added.size).reshape(added.shape)
            at = following
        # One after the other: numpy's own sum adds in an order that depends on the machine.
        outputs = np.add.accumulate(self.value.take(at), axis=1) if len(self.roots) else np.zeros((len(values), 1))
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
    sizes = [len(tree[0]) for tree in trees]
    starts = np.cumsum([0, *sizes])[:-1].astype(np.int64)
    empty: list[npt.NDArray[Any]] = [np.zeros(0)]
    feature, threshold, right, unknown, value = (np.concatenate([tree[n] for tree in trees] or empty) for n in range(5))
    itself = np.arange(len(feature))
    leaf = feature < 0
    right = np.where(leaf, itself, right + np.repeat(starts, sizes)).astype(np.int64)
    left = np.where(leaf, itself, itself + 1)
    return Trees(
        features=features,
        scale=_finite(raw["scale"]),
        shift=_finite(raw["shift"]),
        roots=starts,
        feature=np.maximum(feature, 0).astype(np.int64),
        threshold=threshold.astype(np.float64),
        left=left,
        right=right,
        unknown_left=unknown.astype(np.bool_),
        value=value.astype(np.float64),
        depth=_depth(starts, left, right),
    )


def _depth(roots: Ints, left: Ints, right: Ints) -> int:
    """Steps from a root to the deepest leaf."""
    depth, level = 0, np.unique(roots)
    while True:
        level = level[left[level] != level]
        if not len(level):
            return depth
        level = np.concatenate([left[level], right[level]])
        depth += 1


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
