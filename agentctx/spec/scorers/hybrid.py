"""The ranking of the repository and the drafter's values in one score. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agentctx.prompt import Float32, TokenizedPrompt
from agentctx.spec.reading import Reading
from agentctx.spec.scorers.base import Asked, Float64, Scorer, Scoring, Units
from agentctx.spec.scorers.calibration import Fusion


@dataclass(frozen=True, slots=True)
class Hybrid:
    """A scorer whose unit scores are fused with the ranking's, with learned weights."""

    base: Scorer
    fusion: Fusion
    name: str = "hybrid"

    @property
    def aggregate(self) -> Units:
        return Fused(self.base.aggregate, self.fusion)

    @property
    def dilutes(self) -> bool:
        return self.base.dilutes

    @property
    def n_lookahead(self) -> int:
        return self.base.n_lookahead

    def depth(self, n_layers: int) -> int:
        return self.base.depth(n_layers)

    def begin(self, asked: Asked) -> tuple[Reading, Scoring]:
        return self.base.begin(asked)


@dataclass(frozen=True, slots=True)
class Fused:
    """Unit scores of a drafter -> log odds with the ranking's worth of each unit and its size."""

    aggregate: Units
    fusion: Fusion

    def __call__(self, tokenized: TokenizedPrompt, values: Float32) -> Float64:
        found = self.aggregate(tokenized, values)
        worth = np.array([unit.score for unit in tokenized.document.units], dtype=np.float64)
        return fused(self.fusion, worth, found, np.diff(tokenized.unit_starts))


def fused(fusion: Fusion, worth: Float64, drafter: Float64, sizes: np.ndarray) -> Float64:
    """float64 (U,): log odds, up to a constant."""
    tokens = np.log(np.maximum(sizes, 1).astype(np.float64))
    odds: Float64 = fusion.rank * np.log(worth + fusion.floor) + drafter + fusion.size * tokens
    return odds
