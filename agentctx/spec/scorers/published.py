"""Scorers as their papers have them, on the rows that a drafter gives. Pure numpy.

None of them asks with the evidence: their queries are the prompt's last tokens and generated ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from agentctx.prompt import Float32
from agentctx.spec.reading import Group, Reading, Reduce, ahead, tokens
from agentctx.spec.score import StepScores, pool
from agentctx.spec.scorers.base import MEAN, Aggregate, Asked, AttentionOnly, Scoring
from agentctx.spec.scorers.queries import last_tokens


@dataclass(frozen=True, slots=True)
class SpecPrefill:
    """SpecPrefill (arXiv 2502.02789, its "Full" setting): the last prompt token and 7 greedy look-ahead tokens ask;
    average pool 13, maximum over layers and heads, mean over the steps.

    `share`: an early exit, after so much of the depth.
    """

    share: float = 1.0
    n_lookahead: int = 8
    kernel: int = 13
    aggregate: Aggregate = MEAN
    dilutes: bool = True

    @property
    def name(self) -> str:
        return "specprefill" if self.share == 1.0 else "early-exit"

    def depth(self, n_layers: int) -> int:
        return max(1, int(n_layers * self.share))

    def begin(self, asked: Asked) -> tuple[Reading, Scoring]:
        names = [ahead(step) for step in range(self.n_lookahead)]
        reading = Reading(n_layers=self.depth(asked.n_layers), n_lookahead=self.n_lookahead)
        return reading, _Steps(StepScores(asked.prompt.n_tokens, self.kernel), names)


@dataclass(frozen=True, slots=True)
class Window:
    """SpecPrefill without generated tokens, as PFlash does it (Luce-Org/lucebox): the last 8 prompt tokens ask."""

    width: int = 8
    kernel: int = 13
    aggregate: Aggregate = MEAN
    name: str = "window"
    dilutes: bool = True
    n_lookahead: int = 0

    def depth(self, n_layers: int) -> int:
        return n_layers

    def begin(self, asked: Asked) -> tuple[Reading, Scoring]:
        groups = tuple(Group(f"last.{at}", tokens([at])) for at in last_tokens(asked.prompt, self.width).tolist())
        scoring = _Steps(StepScores(asked.prompt.n_tokens, self.kernel), [group.name for group in groups])
        return Reading(groups, self.depth(asked.n_layers)), scoring


@dataclass(slots=True)
class _Steps(AttentionOnly):
    """Each group is a step: its layers come one after the other."""

    scores: StepScores
    names: Sequence[str]
    current: str | None = None

    def rows(self, group: str, layer: int, rows: Float32) -> None:
        if self.current is not None and group != self.current:
            self.scores.end_step()
        self.current = group
        self.scores.add(rows)

    def values(self) -> Float32:
        if self.current is not None:
            self.scores.end_step()
            self.current = None
        return self.scores.mean()


@dataclass(frozen=True, slots=True)
class SnapKV:
    """SnapKV (arXiv 2404.14469) as a score: the last 32 prompt tokens ask, average pool 7, mean over all heads."""

    width: int = 32
    kernel: int = 7
    aggregate: Aggregate = MEAN
    name: str = "snapkv"
    dilutes: bool = True
    n_lookahead: int = 0

    def depth(self, n_layers: int) -> int:
        return n_layers

    def begin(self, asked: Asked) -> tuple[Reading, Scoring]:
        group = Group("window", last_tokens(asked.prompt, self.width))
        n_layers = self.depth(asked.n_layers)

        def combine(found: list[Float32]) -> Float32:
            mean: Float32 = np.mean(found, axis=0, dtype=np.float32)
            return mean

        return Reading((group,), n_layers), _Layers(lambda _, rows: pool(rows, self.kernel).mean(axis=0), combine)


@dataclass(frozen=True, slots=True)
class SpecPC:
    """SpecPC (arXiv 2506.08373): the last 64 prompt tokens ask, the later the louder, and one generated token; maximum
    over everything in the upper two thirds of the layers, max pool 32 (its value for code)."""

    width: int = 64
    kernel: int = 33
    skipped: float = 1 / 3
    aggregate: Aggregate = MEAN
    name: str = "specpc"
    dilutes: bool = True
    n_lookahead: int = 2  # the last prompt token's step, which is in the window already, and one generated token

    def depth(self, n_layers: int) -> int:
        return n_layers

    def begin(self, asked: Asked) -> tuple[Reading, Scoring]:
        at = last_tokens(asked.prompt, self.width)
        weights = np.linspace(0, 1, len(at) + 1, dtype=np.float32)[1:]
        n_layers = self.depth(asked.n_layers)
        first = int(n_layers * self.skipped)

        def reduce(layer: int, rows: Float32) -> Float32 | None:
            return rows.max(axis=0) if layer >= first else None

        def combine(found: list[Float32]) -> Float32:
            return max_pool(np.max(found, axis=0), self.kernel)

        groups = (Group("window", at, Reduce.MAX, weights),)
        return Reading(groups, n_layers, n_lookahead=self.n_lookahead), _Layers(reduce, combine)


@dataclass(frozen=True, slots=True)
class GemFilter:
    """GemFilter (arXiv 2409.17422): products of the last token's query and the keys in one early layer, no softmax,
    summed over heads, average pool 5. Its filter layer lies at two fifths of the model's depth."""

    share: float = 0.4
    kernel: int = 5
    aggregate: Aggregate = MEAN
    name: str = "gemfilter"
    dilutes: bool = False
    n_lookahead: int = 0

    def depth(self, n_layers: int) -> int:
        return max(1, round(n_layers * self.share))

    def begin(self, asked: Asked) -> tuple[Reading, Scoring]:
        group = Group("last", last_tokens(asked.prompt, 1), raw=True)
        n_layers = self.depth(asked.n_layers)

        def reduce(layer: int, rows: Float32) -> Float32 | None:
            return pool(rows.sum(axis=0, keepdims=True), self.kernel)[0] if layer == n_layers - 1 else None

        return Reading((group,), n_layers), _Layers(reduce, lambda found: found[0])


@dataclass(frozen=True, slots=True)
class Claa:
    """CLAA (arXiv 2602.16054): the last 8 prompt tokens ask, average pool 7, mean over heads, maximum over the
    consecutive layers between the fourth and about the middle of the model."""

    width: int = 8
    kernel: int = 7
    skipped: int = 4
    share: float = 0.5
    aggregate: Aggregate = MEAN
    name: str = "claa"
    dilutes: bool = True
    n_lookahead: int = 0

    def depth(self, n_layers: int) -> int:
        return max(1, round(n_layers * self.share))

    def begin(self, asked: Asked) -> tuple[Reading, Scoring]:
        group = Group("window", last_tokens(asked.prompt, self.width))
        n_layers = self.depth(asked.n_layers)
        first = min(self.skipped, n_layers - 1)

        def reduce(layer: int, rows: Float32) -> Float32 | None:
            return pool(rows, self.kernel).mean(axis=0) if layer >= first else None

        def combine(found: list[Float32]) -> Float32:
            peak: Float32 = np.max(found, axis=0)
            return peak

        return Reading((group,), n_layers), _Layers(reduce, combine)


@dataclass(slots=True)
class _Layers(AttentionOnly):
    """Reduces the heads of each layer at once, the layers at the end."""

    reduce: Callable[[int, Float32], Float32 | None]
    combine: Callable[[list[Float32]], Float32]
    found: list[Float32] = field(default_factory=list)

    def rows(self, group: str, layer: int, rows: Float32) -> None:
        values = self.reduce(layer, rows)
        if values is not None:
            self.found.append(values)

    def values(self) -> Float32:
        return self.combine(self.found)


def max_pool(values: Float32, kernel: int) -> Float32:
    """The maximum over the `kernel` (odd) values around each, float32 (T,)."""
    half = kernel // 2
    padded = np.pad(values, half, constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel)
    peaks: Float32 = windows.max(axis=1)
    return peaks
