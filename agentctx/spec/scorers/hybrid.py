"""The ranking of the repository and what a drafter says in one score. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from agentctx.prompt import Float32, TokenizedPrompt
from agentctx.spec.index import PromptIndex
from agentctx.spec.reading import Reading
from agentctx.spec.scorers.base import MEAN, Asked, Float64, Scoring, Units
from agentctx.spec.scorers.calibration import Calibration, Fusion
from agentctx.spec.scorers.contrast import EvidenceHeads
from agentctx.spec.scorers.probe import Probe
from agentctx.spec.scorers.queries import code_end


@dataclass(frozen=True, slots=True)
class Hybrid:
    """Evidence heads and the probe on one run of the drafter, fused with the ranking's worth of each unit. What has no
    weight in the fusion isn't read."""

    known: Calibration
    name: str = "hybrid"
    dilutes: bool = False
    n_lookahead: int = 0

    @property
    def aggregate(self) -> Units:
        return Fused(self.known.fusion)

    def depth(self, n_layers: int) -> int:
        return max(part.depth(n_layers) for part in (self._heads, self._probe) if part is not None)

    def begin(self, asked: Asked) -> tuple[Reading, Scoring]:
        fusion = self.known.fusion
        if self._heads is None:
            assert self._probe is not None
            reading, probing = self._probe.begin(asked)
            return reading, _Both(asked.prompt, fusion, None, probing)
        reading, watching = self._heads.begin(asked)
        if self._probe is None:
            return reading, _Both(asked.prompt, fusion, watching, None)
        states, probing = self._probe.begin(asked)
        whole = replace(reading, n_layers=self.depth(asked.n_layers), hidden=states.hidden)
        return whole, _Both(asked.prompt, fusion, watching, probing)

    @property
    def _heads(self) -> EvidenceHeads | None:
        return EvidenceHeads(self.known.evidence) if self.known.fusion.heads else None

    @property
    def _probe(self) -> Probe | None:
        return Probe(self.known) if self.known.fusion.probe else None


@dataclass(frozen=True, slots=True)
class _Both:
    prompt: TokenizedPrompt
    fusion: Fusion
    watching: Scoring | None
    probing: Scoring | None

    def rows(self, group: str, layer: int, rows: Float32) -> None:
        if self.watching is not None:
            self.watching.rows(group, layer, rows)

    def hidden(self, depth: int, states: Float32) -> None:
        if self.probing is not None:
            self.probing.hidden(depth, states)

    def values(self) -> Float32:
        """The mean over the units of the code is 0: of tokens that it doesn't judge (tests, log, request) the ranking
        alone decides."""
        end, units = code_end(self.prompt), candidates(self.prompt)
        found = np.zeros(self.prompt.n_tokens, np.float32)
        if self.watching is not None:
            values, _ = self._centred(self.watching.values(), units)
            found[:end] += np.float32(self.fusion.heads) * values[:end]
        if self.probing is not None:
            values, spread = self._centred(self.probing.values(), units)
            found[:end] += np.float32(self.fusion.probe / max(spread, 1e-9)) * values[:end]
        return found

    def _centred(self, values: Float32, units: np.ndarray) -> tuple[Float32, float]:
        """The values minus the mean of the units' means, and the spread of those."""
        means = MEAN(self.prompt, values)[units]
        if not len(means):
            return values, 0.0
        return values - np.float32(means.mean()), float(means.std())


def candidates(prompt: TokenizedPrompt) -> np.ndarray:
    """Units of the code that can be chosen for their own sake."""
    n_units = int(np.searchsorted(prompt.unit_starts, code_end(prompt)))
    sizes = np.diff(prompt.unit_starts[: n_units + 1])
    support = np.array(PromptIndex(prompt.document).is_support[:n_units], dtype=bool)
    return np.flatnonzero((sizes > 0) & ~support)


@dataclass(frozen=True, slots=True)
class Fused:
    """Means of a drafter's values -> log odds with the ranking's worth of each unit."""

    fusion: Fusion

    def __call__(self, tokenized: TokenizedPrompt, values: Float32) -> Float64:
        worth = np.array([unit.score for unit in tokenized.document.units], dtype=np.float64)
        return fused(self.fusion, worth, MEAN(tokenized, values))


def fused(fusion: Fusion, worth: Float64, drafter: Float64) -> Float64:
    """float64 (U,): log odds, up to a constant."""
    odds: Float64 = np.log(worth + fusion.floor) + drafter
    return odds
