"""Tasks -> a Calibration, and what each scorer is worth on repositories that it didn't learn from. Pure numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agentctx.bench.calibration.features import FLOOR, GROUPS, POWER, Task, folds, rank_features
from agentctx.bench.calibration.logistic import balanced, fit
from agentctx.bench.calibration.probe_fit import fit_probe
from agentctx.errors import UsageError
from agentctx.prompt import Float32
from agentctx.spec.scorers.base import Float64
from agentctx.spec.scorers.calibration import Calibration, Fusion, HeadWeights, ProbeWeights
from agentctx.spec.scorers.probe import probed

PENALTIES = (0.003, 0.01, 0.03)
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


def learn(
    tasks: Sequence[Task], shape: Shape, drafter: str, digest: str, about: Mapping[str, object], say: Say
) -> tuple[Calibration, dict[str, Figures]]:
    """A calibration from all tasks; the figures are of weights that saw no task of the same repository.

    Raises:
        UsageError: too few tasks, or repositories.
    """
    useful = [one for one in tasks if (one.gold > 0).any() and (one.gold == 0).any()]
    if len(useful) < FEWEST:
        raise UsageError(
            f"{len(useful)} bug fixes with edited code in the window are too few to calibrate by ({FEWEST} are needed)",
            hint="take a longer history, or more repositories",
        )
    alone, alone_penalty = _chosen(useful, with_rank=False, say=say)
    joint, joint_penalty = _chosen(useful, with_rank=True, say=say)
    unseen: dict[str, list[Float64]] = {
        "rank": [one.worth for one in useful],
        "evidence-heads": alone,
        "hybrid": joint,
        "qrhead": _unseen(useful, lambda seen: _by_heads(best_heads(seen, shape), shape)),
        "probe": _unseen(useful, lambda seen: _by_probe(fit_probe(seen, shape.n_layers))),
        "icr": [one.heads.sum(axis=1).astype(np.float64) for one in useful],
    }
    for name, scores in _randoms(useful).items():
        unseen[name] = scores
    figures = {name: figures_of(useful, scores) for name, scores in unseen.items()}
    for name, one in figures.items():
        say(f"{name:16} recall {' '.join(f'{r:.3f}' for r in one.recall)}  auc {one.auc:.3f}")
    flat = _solved(useful, alone_penalty, with_rank=False)
    both = _solved(useful, joint_penalty, with_rank=True)
    found = Calibration(
        drafter=drafter,
        digest=digest,
        heads=best_heads(useful, shape),
        evidence=shape.weights(flat),
        joint=shape.weights(both[2:]),
        fusion=Fusion(rank=round(float(both[0]), 5), floor=FLOOR, size=round(float(both[1]), 5)),
        probe=fit_probe(useful, shape.n_layers),
        about={
            **about,
            "tasks": len(useful),
            "penalties": [alone_penalty, joint_penalty],
            "unseen": {
                name: {"recall": [round(r, 4) for r in one.recall], "auc": round(one.auc, 4)}
                for name, one in sorted(figures.items())
            },
        },
    )
    return found, figures


# ---------------------------------------------------------------- fitting


def _inputs(one: Task, *, with_rank: bool) -> np.ndarray:
    """Centred: only differences within a task count."""
    heads = one.heads.astype(np.float32)
    x = np.concatenate([rank_features(one).astype(np.float32), heads], axis=1) if with_rank else heads
    centred: np.ndarray = x - x.mean(axis=0, keepdims=True)
    return centred


def _solved(tasks: Sequence[Task], penalty: float, *, with_rank: bool) -> Float64:
    x = np.concatenate([_inputs(one, with_rank=with_rank) for one in tasks])
    y = np.concatenate([one.gold > 0 for one in tasks])
    weight = np.concatenate([balanced(one.gold) for one in tasks])
    penalties = np.full(x.shape[1], penalty * len(tasks))
    if with_rank:
        penalties[:2] = 1e-3
    return fit(_with_constant(x), y, weight, np.append(penalties, 0.0))[:-1]


def _with_constant(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x, np.ones((len(x), 1), x.dtype)], axis=1)


def _chosen(tasks: Sequence[Task], *, with_rank: bool, say: Say) -> tuple[list[Float64], float]:
    """Scores by weights that didn't see the repository, with the penalty for which their recall is best."""
    best: tuple[float, float, list[Float64]] | None = None
    for penalty in PENALTIES:

        def make(seen: Sequence[Task], penalty: float = penalty) -> Callable[[Task], Float64]:
            w = _solved(seen, penalty, with_rank=with_rank)
            return lambda one: _inputs(one, with_rank=with_rank) @ w

        scores = _unseen(tasks, make)
        found = figures_of(tasks, scores)
        value = float(np.mean(found.recall[1:3]))
        kind = "with the ranking" if with_rank else "alone"
        say(f"heads {kind}, penalty {penalty}: recall {' '.join(f'{r:.3f}' for r in found.recall)} auc {found.auc:.3f}")
        if best is None or value > best[0]:
            best = (value, penalty, scores)
    assert best is not None
    return best[2], best[1]


def _unseen(tasks: Sequence[Task], make: Callable[[Sequence[Task]], Callable[[Task], Float64]]) -> list[Float64]:
    of = folds(tasks, N_FOLDS)
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


def _randoms(tasks: Sequence[Task]) -> dict[str, list[Float64]]:
    rng = np.random.default_rng(0)
    return {"random": [rng.random(len(one.gold)) for one in tasks]}


def figures_of(tasks: Sequence[Task], scores: Sequence[Float64]) -> Figures:
    recalls = [[recall(one, found, keep) for keep in KEEPS] for one, found in zip(tasks, scores, strict=True)]
    aucs = [_auc(one.gold > 0, found) for one, found in zip(tasks, scores, strict=True)]
    return Figures(tuple(np.mean(recalls, axis=0).tolist()), float(np.mean(aucs)))


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
