"""The probe's weights, by gradient descent on the chance of an edited unit. Pure numpy, deterministic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from agentctx.bench.calibration.features import GROUPS, Task
from agentctx.prompt import Float32
from agentctx.spec.scorers.calibration import ProbeWeights

RANK = 16
EPOCHS = 4  # more of them learn the tasks by heart
RATE = 2e-3
DECAY = 0.02  # of the weights, per epoch and unit of the rate's thousandth


@dataclass(slots=True)
class _Adam:
    """Adam (arXiv 1412.6980) with decoupled decay."""

    values: list[Float32]
    first: list[Float32] = field(default_factory=list)
    second: list[Float32] = field(default_factory=list)
    n: int = 0

    def __post_init__(self) -> None:
        self.first = [np.zeros_like(one) for one in self.values]
        self.second = [np.zeros_like(one) for one in self.values]

    def step(self, gradients: Sequence[Float32], rate: float, decay: float) -> None:
        self.n += 1
        for value, gradient, first, second in zip(self.values, gradients, self.first, self.second, strict=True):
            first *= 0.9
            first += 0.1 * gradient
            second *= 0.999
            second += 0.001 * gradient**2
            corrected = first / (1 - 0.9**self.n) / (np.sqrt(second / (1 - 0.999**self.n)) + 1e-8)
            value -= rate * corrected + rate * decay * value


def fit_probe(tasks: Sequence[Task], depth: int, seed: int = 0, epochs: int = EPOCHS) -> ProbeWeights:
    """Maximises the chance, by softmax over a task's units, that one of the edited is taken."""
    width = tasks[0].states.shape[1]
    rng = np.random.default_rng(seed)
    small = 1 / np.sqrt(width)
    direction = np.zeros(width, np.float32)
    keys = (rng.standard_normal((width, RANK)) * small).astype(np.float32)
    queries = [(rng.standard_normal((width, RANK)) * small).astype(np.float32) for _ in GROUPS]
    adam = _Adam([direction, keys, *queries])
    useful = [one for one in tasks if (one.gold > 0).any() and (one.gold == 0).any()]
    scale = np.float32(np.mean([np.linalg.norm(one.states, axis=1).mean() for one in useful]))
    for epoch in range(epochs):
        rate = RATE * (1 - epoch / epochs)
        for at in rng.permutation(len(useful)).tolist():
            adam.step(_gradients(useful[at], direction, keys, queries, scale), rate, DECAY)
    return ProbeWeights(
        depth, direction / scale, keys / scale, {g: q / scale for g, q in zip(GROUPS, queries, strict=True)}
    )


def _gradients(
    one: Task, direction: Float32, keys: Float32, queries: Sequence[Float32], scale: np.float32
) -> list[Float32]:
    states = one.states / scale
    asked = [one.asked[group] / scale if group in one.asked else None for group in GROUPS]
    z: Float32 = np.zeros(keys.shape[1], np.float32)
    for query, matrix in zip(asked, queries, strict=True):
        if query is not None:
            z += query @ matrix
    scores = (states @ (direction + keys @ z)).astype(np.float64)
    chance = np.exp(scores - scores.max())
    gold = chance * (one.gold > 0)
    error = (chance / chance.sum() - gold / max(gold.sum(), 1e-300)).astype(np.float32)
    pulled = states.T @ error
    dz = keys.T @ pulled
    of_queries = [np.zeros_like(m) if q is None else np.outer(q, dz) for q, m in zip(asked, queries, strict=True)]
    return [pulled, np.outer(pulled, z), *of_queries]
