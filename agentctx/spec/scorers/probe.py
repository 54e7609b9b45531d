"""A small trained head on the drafter's hidden states, in the spirit of LongAttnComp (arXiv 2606.01336). Pure numpy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agentctx.errors import EngineUnavailable
from agentctx.prompt import Float32, Int32
from agentctx.spec.reading import Reading
from agentctx.spec.scorers.base import MEAN, Aggregate, Asked, Scoring
from agentctx.spec.scorers.calibration import Calibration, ProbeWeights, needed
from agentctx.spec.scorers.queries import evidence_groups


@dataclass(frozen=True, slots=True)
class Probe:
    """How well the state of a token fits the mean states of the evidence's tokens, by learned projections."""

    calibration: Calibration | None = None
    aggregate: Aggregate = MEAN
    name: str = "probe"
    dilutes: bool = False
    n_lookahead: int = 0

    def depth(self, n_layers: int) -> int:
        return self._weights.depth

    def begin(self, asked: Asked) -> tuple[Reading, Scoring]:
        groups = {group.name: group.tokens for group in evidence_groups(asked.prompt)}
        if asked.n_layers < self._weights.depth:
            raise EngineUnavailable(
                f"the probe reads the states after layer {self._weights.depth}, the drafter stops at {asked.n_layers}",
                hint="take another --scorer, or leave --drafter-layers out",
            )
        return Reading(n_layers=self._weights.depth, hidden=(self._weights.depth,)), _Probing(self._weights, groups)

    @property
    def _weights(self) -> ProbeWeights:
        probe = needed(self.calibration, self.name).probe
        if probe is None:
            raise EngineUnavailable(
                "the calibration of this drafter has no probe", hint="take another --scorer, or calibrate it again"
            )
        return probe


@dataclass(slots=True)
class _Probing:
    weights: ProbeWeights
    groups: dict[str, Int32]
    found: Float32 | None = None

    def rows(self, group: str, layer: int, rows: Float32) -> None:
        raise ValueError("attention wasn't asked for")

    def hidden(self, depth: int, states: Float32) -> None:
        self.found = probed(self.weights, states, {name: states[at].mean(axis=0) for name, at in self.groups.items()})

    def values(self) -> Float32:
        if self.found is None:
            raise ValueError("the drafter gave no states")
        return self.found


def probed(weights: ProbeWeights, states: Float32, asked: dict[str, Float32]) -> Float32:
    """float32 (n,): values of states (n, D); linear in them, so that the mean over a unit is that of its tokens."""
    direction = weights.direction.astype(np.float32)
    for group, query in sorted(asked.items()):
        if group in weights.queries:
            direction = direction + weights.keys @ (query @ weights.queries[group])
    found: Float32 = states @ direction
    return found
