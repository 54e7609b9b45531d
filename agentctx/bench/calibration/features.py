"""A Shot -> what is learned from: a feature for each head and group of queries, per unit. Pure numpy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agentctx.bench.calibration.shots import Shot
from agentctx.prompt import Float32
from agentctx.spec.scorers.base import Float64
from agentctx.spec.scorers.contrast import spread_of, unit_features
from agentctx.spec.scorers.queries import LOG, NULL, REQUEST, TEST, null_of

GROUPS = (TEST, LOG, REQUEST)
FLOOR = 1e-4  # of a unit's worth, before its logarithm is taken
POWER = 1.0  # means of units: .5 finds no more, and a mean can be added to the probe's


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """The units of a shot that can be chosen for their own sake, C of them.

    `heads`: float32 (C, G * L * H); `states`: float32 (C, D), minus their mean; `asked`: by group, (D,).
    `code`: tokens of all code in the window. `lines`: gold lines, packed or not.
    """

    repo: str
    units: np.ndarray
    heads: Float32
    states: Float32
    asked: dict[str, Float32]
    worth: Float64
    sizes: Float64
    gold: Float64
    code: int
    lines: int


def task(shot: Shot, depth: int, power: float = POWER) -> Task:
    """As the first `depth` layers see it: their heads, and the states after them."""
    sizes = np.asarray(shot.sizes)
    units = np.flatnonzero((sizes > 0) & ~shot.support)
    states = shot.states[depth][units]
    return Task(
        repo=shot.repo,
        units=units,
        heads=head_features(shot, depth, power)[:, units].T.copy(),
        states=states - states.mean(axis=0, keepdims=True) if len(states) else states,
        asked=shot.asked[depth],
        worth=shot.rank[units].astype(np.float64),
        sizes=sizes[units].astype(np.float64),
        gold=shot.gold[units].astype(np.float64),
        code=int(shot.starts[-1]),
        lines=shot.lines,
    )


def head_features(shot: Shot, depth: int, power: float = POWER) -> Float32:
    """float32 (G * L * H, U): as `EvidenceHeads` has them; 0 for a group that the prompt doesn't have."""
    null = shot.rows[NULL]
    found = []
    for group in GROUPS:
        for layer in range(depth):
            if group not in shot.rows:
                found.append(np.zeros((null.shape[1], len(shot.sizes)), np.float32))
                continue
            difference = shot.rows[group][layer] - shot.rows[null_of(group)][layer]
            features = unit_features(difference, shot.starts, power)
            found.append(features / spread_of(features, shot.starts)[:, None])
    return np.concatenate(found)
