"""Examples of bug fixes -> the ranking model's data file. Training needs LightGBM; using the model doesn't.

A model is fitted in two stages (`repo.ranking.score`). What the second learns from the first are scores by models
that saw no commit of the same repository, as it will be for a user's repository.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from agentctx.bench.folds import folds
from agentctx.bench.ranking.export import stage
from agentctx.bench.ranking.mine import Example
from agentctx.errors import UnavailableError, UsageError
from agentctx.repo.ranking.model import SCHEMA, from_json, logistic
from agentctx.repo.ranking.parts import PARTS, with_chunks
from agentctx.repo.ranking.score import aligned
from agentctx.repo.ranking.text import Floats

if TYPE_CHECKING:
    from lightgbm import Booster

MOST_WEIGHT = 8.0  # of a candidate that stands for many others


@dataclass(frozen=True, slots=True)
class Settings:
    """`rounds`: trees of each stage; `rates`: the share of the rows without gold that it learns from.

    `dropped`: features that aren't used, by the start of their names. `base`: a model, as data, to which trees are
    added instead of beginning anew.
    """

    rounds: tuple[int, int] = (150, 110)
    leaves: int = 24
    rate: float = 0.06
    rates: tuple[float, float] = (0.5, 0.2)
    folds: int = 5
    seed: int = 1
    threads: int = 1
    dropped: tuple[str, ...] = ()
    base: Mapping[str, Any] | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "objective": "binary",
            "learning_rate": self.rate,
            "num_leaves": self.leaves,
            "min_data_in_leaf": 40,
            "feature_fraction": 0.4,
            "bagging_fraction": 0.8,
            "bagging_freq": 1,
            "lambda_l2": 5.0,
            "max_bin": 63,
            "num_threads": self.threads,
            "seed": self.seed,
            "deterministic": True,
            "force_row_wise": True,
            "verbose": -1,
        }


@dataclass(frozen=True, slots=True)
class Part:
    """The inputs of a stage for one example: a row for each candidate or unit."""

    values: Floats
    gold: Floats
    weight: Floats
    start: Floats | None = None  # outputs of the model that trees are added to


@dataclass(slots=True)
class Fitted:
    """Per stage the booster, scale and shift of its calibration, and per example the scores of those that did not
    know its repository."""

    boosters: list[Booster] = field(default_factory=list)
    calibration: list[tuple[float, float]] = field(default_factory=list)
    unseen: list[list[Floats]] = field(default_factory=list)


def require() -> Any:
    """The library that trains.

    Raises:
        UnavailableError: it isn't installed.
    """
    try:
        import lightgbm
    except ImportError as error:
        raise UnavailableError(
            "training the ranking model needs LightGBM", hint="pip install 'agentctx[train]'"
        ) from error
    return lightgbm


def fit(
    examples: Mapping[str, Sequence[Example]], names: Sequence[str], settings: Settings, say: Callable[[str], None]
) -> Fitted:
    """`examples`: by repository. `names`: of the features of the first stage.

    Raises:
        UnavailableError: no LightGBM.
        UsageError: too few examples.
    """
    require()
    flat = [one for repo in sorted(examples) for one in examples[repo]]
    dealt = folds_of(examples, settings.folds)
    if len(flat) < 2 * settings.folds:
        raise UsageError(
            f"{len(flat)} bug fixes with tests are too few to learn from",
            hint="take a longer history, or more repositories",
        )
    made = Fitted()
    base = from_json(json.dumps(settings.base), "base").stages if settings.base is not None else {}
    for number, (label, columns) in enumerate(_stages(names)):
        before = made.unseen[-1] if made.unseen else [np.zeros(0)] * len(flat)
        parts = [inputs(number, one, p) for one, p in zip(flat, before, strict=True)]
        if label in base:
            parts = [replace(part, start=base[label].raw(aligned(part.values, columns, base[label]))) for part in parts]
        keep = _kept(columns, settings.dropped)
        say(f"{label}: {sum(len(part.gold) for part in parts)} rows, {len(keep)} features")
        raws = _unseen(parts, dealt, keep, settings, number)
        scale, shift = calibrate(parts, raws)
        made.boosters.append(_booster(parts, keep, settings, number))
        made.calibration.append((scale, shift))
        made.unseen.append([logistic(scale * raw + shift) for raw in raws])
    return made


def _stages(names: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    return [("chunk", tuple(names)), ("part", PARTS)]


def _kept(columns: Sequence[str], dropped: Sequence[str]) -> list[int]:
    return [n for n, name in enumerate(columns) if not name.startswith(tuple(dropped) or ("\0",))]


def inputs(number: int, one: Example, before: Floats) -> Part:
    """Of the stage `number`; `before`: the chances that the stage before gave the candidates."""
    if number == 0:
        return Part(one.features, one.gold > 0, _weights(one.weight, one.gold))
    values = with_chunks(one.unit_features, one.unit_of, before)
    return Part(values, one.unit_gold > 0, _weights(one.weight[one.unit_of], one.unit_gold))


def _weights(weight: Floats, gold: Floats) -> Floats:
    """A fix that edits much must not outweigh the others."""
    weights: Floats = np.minimum(weight, MOST_WEIGHT) / max(float((gold > 0).sum()), 1.0) ** 0.5
    return weights


def folds_of(examples: Mapping[str, Sequence[Example]], n: int) -> list[int]:
    """The fold of each example in the order of repositories."""
    return folds([repo for repo in sorted(examples) for _ in examples[repo]], n)


def _unseen(
    parts: Sequence[Part], dealt: Sequence[int], keep: list[int], settings: Settings, number: int
) -> list[Floats]:
    """Raw scores of each example by a booster that was fitted without its fold."""
    out: list[Floats] = [np.zeros(0)] * len(parts)
    for fold in sorted(set(dealt)):
        others = [part for part, of in zip(parts, dealt, strict=True) if of != fold]
        booster = _booster(others, keep, settings, number)
        for at, of in enumerate(dealt):
            if of == fold:
                raw = np.asarray(booster.predict(parts[at].values[:, keep], raw_score=True), dtype=np.float64)
                start = parts[at].start
                out[at] = raw if start is None else raw + start
    return out


def _booster(parts: Sequence[Part], keep: list[int], settings: Settings, number: int) -> Booster:
    lightgbm = require()
    rng = np.random.default_rng(settings.seed)
    taken = [part.gold | (rng.random(len(part.gold)) < settings.rates[number]) for part in parts]
    values = np.concatenate([part.values[mask][:, keep] for part, mask in zip(parts, taken, strict=True)])
    gold = np.concatenate([part.gold[mask] for part, mask in zip(parts, taken, strict=True)]).astype(np.float64)
    weight = np.concatenate([part.weight[mask] for part, mask in zip(parts, taken, strict=True)])
    weight = np.where(gold > 0, weight, weight / settings.rates[number])
    starts = [part.start[mask] for part, mask in zip(parts, taken, strict=True) if part.start is not None]
    start = np.concatenate(starts) if starts else None
    made = lightgbm.Dataset(values, gold, weight=weight, init_score=start, params={"verbose": -1, "max_bin": 63})
    booster: Booster = lightgbm.train(settings.parameters, made, settings.rounds[number])
    return booster


def calibrate(parts: Sequence[Part], raws: Sequence[Floats], rounds: int = 25) -> tuple[float, float]:
    """(scale, shift) for which logistic(scale * raw + shift) is the share of the gold, by Newton's method on the
    likelihood; every candidate counts for those that it stands for."""
    x, y = np.concatenate(raws), np.concatenate([part.gold for part in parts]).astype(np.float64)
    a, b = 1.0, 0.0
    for _ in range(rounds):
        p = 1.0 / (1.0 + np.exp(-(a * x + b)))
        w = np.maximum(p * (1 - p), 1e-9)
        gradient = np.array([((p - y) * x).sum(), (p - y).sum()])
        curve = np.array([[(w * x * x).sum(), (w * x).sum()], [(w * x).sum(), w.sum()]]) + 1e-6 * np.eye(2)
        step = np.linalg.solve(curve, gradient)
        a, b = a - float(step[0]), b - float(step[1])
    return a, b


def to_json(made: Fitted, names: Sequence[str], settings: Settings, trained: Mapping[str, Any]) -> dict[str, Any]:
    """What `repo.ranking.model` reads."""
    stages = {}
    for (label, columns), booster, (scale, shift) in zip(_stages(names), made.boosters, made.calibration, strict=True):
        kept = [columns[n] for n in _kept(columns, settings.dropped)]
        stages[label] = stage(booster.dump_model(), kept, scale, shift)
        if settings.base is not None:
            stages[label]["trees"] = [*settings.base["stages"][label]["trees"], *stages[label]["trees"]]
    return {"schema": SCHEMA, "trained": dict(trained), "stages": stages}
