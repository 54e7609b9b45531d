"""Tasks -> a Calibration, and what each scorer is worth on repositories that it didn't learn from. Pure numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from agentctx.bench.calibration.features import FLOOR, GROUPS, POWER, Task
from agentctx.bench.calibration.logistic import balanced, fit
from agentctx.bench.calibration.probe_fit import fit_probe
from agentctx.bench.folds import folds
from agentctx.errors import UsageError
from agentctx.prompt import Float32
from agentctx.spec.scorers.base import Float64
from agentctx.spec.scorers.calibration import Calibration, Fusion, HeadWeights, ProbeWeights
from agentctx.spec.scorers.probe import probed

PENALTIES = (0.03, 0.1)
HEADS = (0.0, 0.1, 0.2, 0.3, 0.6)  # weights that are tried in the fusion
PROBES = (0.0, 0.2, 0.4, 0.7)
SAME = 0.01  # of mean recall: less is no reason to run the drafter deeper
N_FOLDS = 5
N_HEADS = 8  # of QRHead
KEEPS = (0.1, 0.2, 0.3, 0.5)
FEWEST = 20  # tasks
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Shape:
    """Of the heads' features: (groups, layers, heads)."""

    n_layers: int
    n_heads: int

    @property
    def n_features(self) -> int:
        return len(GROUPS) * self.n_layers * self.n_heads

    def weights(self, flat: Float64) -> HeadWeights:
        shaped = flat.reshape(len(GROUPS), self.n_layers, self.n_heads).astype(np.float32)
        return HeadWeights(GROUPS, shaped, POWER)


@dataclass(frozen=True, slots=True)
class Figures:
    """Of a scorer, means over tasks with gold in the window: recall of its lines at KEEPS (shares of the code's
    tokens), and the chance that an edited unit comes before another."""

    recall: tuple[float, ...]
    auc: float

    @property
    def mean(self) -> float:
        return float(np.mean(self.recall))

    def to_dict(self) -> dict[str, object]:
        return {"recall": [round(one, 4) for one in self.recall], "auc": round(self.auc, 4)}


@dataclass(frozen=True, slots=True)
class Candidate:
    """What can be had from the first `shape.n_layers` layers, by weights that didn't see a task's repository."""

    shape: Shape
    tasks: Sequence[Task]
    penalty: float
    heads: Sequence[Float64]
    probe: Sequence[Float64]
    fusion: Fusion
    hybrid: Sequence[Float64]
    value: float  # mean recall of the hybrid


def learn(
    by_depth: Mapping[int, Sequence[Task]],
    n_heads: int,
    drafter: str,
    digest: str,
    about: Mapping[str, object],
    say: Say,
) -> tuple[Calibration, dict[str, Figures]]:
    """A calibration from all tasks; the figures are of weights that saw no task of the same repository.

    by_depth: the same tasks, as the first so many layers see them. The shallowest is taken that finds as much.

    Raises:
        UsageError: too few tasks.
    """
    found = [_candidate(Shape(depth, n_heads), _useful(tasks), say) for depth, tasks in sorted(by_depth.items())]
    most = max(one.value for one in found)
    best = next(one for one in found if one.value >= most - SAME)
    tasks, shape = best.tasks, best.shape
    unseen: dict[str, Sequence[Float64]] = {
        "random": _random(tasks),
        "rank": [one.worth for one in tasks],
        "icr": [one.heads.sum(axis=1).astype(np.float64) for one in tasks],
        "qrhead": _unseen(tasks, lambda seen: _by_heads(best_heads(seen, shape), shape)),
        "evidence-heads": best.heads,
        "probe": best.probe,
        "hybrid": best.hybrid,
    }
    figures = {name: figures_of(tasks, scores) for name, scores in unseen.items()}
    made = Calibration(
        drafter=drafter,
        digest=digest,
        heads=best_heads(tasks, shape),
        evidence=shape.weights(_solved(tasks, best.penalty)),
        fusion=best.fusion,
        probe=fit_probe(tasks, shape.n_layers) if best.fusion.probe else None,
        about={
            **about,
            "tasks": len(tasks),
            "penalty": best.penalty,
            "depths": {str(one.shape.n_layers): round(one.value, 4) for one in found},
            "unseen": {name: one.to_dict() for name, one in sorted(figures.items())},
        },
    )
    return made, figures


def _useful(tasks: Sequence[Task]) -> list[Task]:
    useful = [one for one in tasks if (one.gold > 0).any() and (one.gold == 0).any()]
    if len(useful) < FEWEST:
        raise UsageError(
            f"{len(useful)} bug fixes with edited code in the window are too few to calibrate by ({FEWEST} are needed)",
            hint="take a longer history, or more repositories",
        )
    return useful


def _candidate(shape: Shape, tasks: Sequence[Task], say: Say) -> Candidate:
    tried = [(penalty, _unseen(tasks, _solver(penalty))) for penalty in PENALTIES]
    penalty, heads = max(tried, key=lambda pair: figures_of(tasks, pair[1]).mean)
    probe = [standard(one) for one in _unseen(tasks, lambda seen: _by_probe(fit_probe(seen, shape.n_layers)))]
    rank = [np.log(one.worth + FLOOR) for one in tasks]
    choices = []
    for a in HEADS:
        for b in PROBES:
            scores = [r + a * h + b * p for r, h, p in zip(rank, heads, probe, strict=True)]
            choices.append(_Choice(Fusion(FLOOR, a, b), scores, _recalls(tasks, scores).mean(axis=1)))
    chosen = lightest(choices[1:])  # the first is the ranking alone
    fusion, hybrid, value = chosen.fusion, chosen.scores, float(chosen.recalls.mean())
    say(f"first {shape.n_layers} layers: {value:.3f} with heads {fusion.heads}, probe {fusion.probe}")
    return Candidate(shape, tasks, penalty, heads, probe, fusion, hybrid, value)


class _Choice(NamedTuple):
    """Weights, and what they give: scores by task, mean recall by task."""

    fusion: Fusion
    scores: Sequence[Float64]
    recalls: Float64


def lightest(choices: Sequence[_Choice]) -> _Choice:
    """The weights that trust the drafter least, among those that can't be told from the best.

    The one-standard-error rule (Breiman et al., Classification and Regression Trees, 1984, 3.4.3), on the paired
    differences: the ranking learned from thousands of fixes, the weights from hundreds, whose evidence is poorer than
    that of real requests.
    """
    best = max(choices, key=lambda one: float(one.recalls.mean()))
    equal = []
    for one in choices:
        behind = best.recalls - one.recalls
        if behind.mean() <= behind.std() / np.sqrt(len(behind)):
            equal.append(one)
    return min(equal, key=lambda one: (one.fusion.heads + one.fusion.probe, -float(one.recalls.mean())))


def standard(values: Float64) -> Float64:
    """The values minus their mean, in units of their spread."""
    found: Float64 = (values - values.mean()) / max(float(values.std()), 1e-9)
    return found


# ---------------------------------------------------------------- fitting


def _centred(one: Task) -> np.ndarray:
    """Only differences within a task count."""
    centred: np.ndarray = one.heads - one.heads.mean(axis=0, keepdims=True)
    return centred


def _solved(tasks: Sequence[Task], penalty: float) -> Float64:
    x = np.concatenate([_centred(one) for one in tasks])
    x = np.concatenate([x, np.ones((len(x), 1), x.dtype)], axis=1)
    y = np.concatenate([one.gold > 0 for one in tasks])
    weight = np.concatenate([balanced(one.gold) for one in tasks])
    penalties = np.append(np.full(x.shape[1] - 1, penalty * len(tasks)), 0.0)
    return fit(x, y, weight, penalties)[:-1]


def _solver(penalty: float) -> Callable[[Sequence[Task]], Callable[[Task], Float64]]:
    def make(seen: Sequence[Task]) -> Callable[[Task], Float64]:
        w = _solved(seen, penalty)
        return lambda one: _centred(one) @ w

    return make


def _unseen(tasks: Sequence[Task], make: Callable[[Sequence[Task]], Callable[[Task], Float64]]) -> list[Float64]:
    of = folds([one.repo for one in tasks], N_FOLDS)
    out: list[Float64] = [np.zeros(0)] * len(tasks)
    for fold in sorted(set(of)):
        score = make([one for one, own in zip(tasks, of, strict=True) if own != fold])
        for at, own in enumerate(of):
            if own == fold:
                out[at] = np.asarray(score(tasks[at]), np.float64)
    return out


def best_heads(tasks: Sequence[Task], shape: Shape) -> tuple[tuple[int, int], ...]:
    """The (layer, head) pairs whose differences fall most on edited units, all groups together."""
    total = np.zeros(shape.n_features)
    for one in tasks:
        gold = one.gold > 0
        total += one.heads[gold].mean(axis=0) - one.heads[~gold].mean(axis=0)
    by_head = total.reshape(len(GROUPS), -1).sum(axis=0)
    order = np.argsort(-by_head, kind="stable")[:N_HEADS]
    return tuple(sorted((int(at) // shape.n_heads, int(at) % shape.n_heads) for at in order))


def _by_heads(heads: Sequence[tuple[int, int]], shape: Shape) -> Callable[[Task], Float64]:
    columns = [
        (group * shape.n_layers + layer) * shape.n_heads + head for group in range(len(GROUPS)) for layer, head in heads
    ]
    return lambda one: one.heads[:, columns].sum(axis=1).astype(np.float64)


def _by_probe(weights: ProbeWeights) -> Callable[[Task], Float64]:
    def score(one: Task) -> Float64:
        found: Float32 = probed(weights, one.states, one.asked)
        return found.astype(np.float64)

    return score


# ---------------------------------------------------------------- figures


def _random(tasks: Sequence[Task]) -> list[Float64]:
    rng = np.random.default_rng(0)
    return [rng.random(len(one.gold)) for one in tasks]


def _recalls(tasks: Sequence[Task], scores: Sequence[Float64]) -> Float64:
    """float64 (tasks, KEEPS)."""
    found = [[recall(one, own, keep) for keep in KEEPS] for one, own in zip(tasks, scores, strict=True)]
    return np.array(found, np.float64)


def figures_of(tasks: Sequence[Task], scores: Sequence[Float64]) -> Figures:
    aucs = [_auc(one.gold > 0, found) for one, found in zip(tasks, scores, strict=True)]
    return Figures(tuple(_recalls(tasks, scores).mean(axis=0).tolist()), float(np.mean(aucs)))


def recall(one: Task, scores: Float64, keep: float) -> float:
    """Of the gold lines in the window those in units that are taken, best first, as far as they fit."""
    room, taken = keep * one.code, 0.0
    for unit in np.argsort(-scores, kind="stable").tolist():
        if one.sizes[unit] <= room:
            room -= one.sizes[unit]
            taken += one.gold[unit]
    return taken / float(one.gold.sum())


def _auc(gold: np.ndarray, scores: Float64) -> float:
    above = scores[gold][:, None] > scores[~gold][None]
    same = scores[gold][:, None] == scores[~gold][None]
    return float((above + 0.5 * same).mean())
