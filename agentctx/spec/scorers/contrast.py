"""Scorers that ask with the evidence's own tokens and subtract what a null query sees. Pure numpy.

The difference says what the evidence looks at beyond what every query looks at (attention sinks, headers, the end of
the code). Only tokens before the evidence have one: those of tests, log and request get the value 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from agentctx.errors import EngineUnavailable
from agentctx.prompt import Float32, TokenizedPrompt
from agentctx.spec.reading import Reading
from agentctx.spec.scorers.base import Aggregate, Asked, AttentionOnly, Kind, Scoring
from agentctx.spec.scorers.calibration import Calibration, HeadWeights, needed
from agentctx.spec.scorers.queries import (
    NULL,
    NULL_REQUEST,
    code_end,
    evidence_groups,
    null_aside,
    null_of,
)

FAIR = Aggregate(Kind.SUM, 0.75)
# (group, layer) -> float32 (H,), or of the first heads; a number for all heads alike; None = the layer isn't used
Weigh = Callable[[str, int], Float32 | float | None]


@dataclass(frozen=True, slots=True)
class Icr:
    """In-context re-ranking (arXiv 2410.02642): attention of all query tokens, all heads, minus the null query's;
    values far below those of their unit are left out.

    `share`: which layers count, as a part of the depth. Selective ICR (arXiv 2602.22591) takes the middle third.
    """

    share: tuple[float, float] = (0.0, 1.0)
    aggregate: Aggregate = FAIR
    dilutes: bool = True
    n_lookahead: int = 0

    @property
    def name(self) -> str:
        return "icr" if self.share == (0.0, 1.0) else "selective-icr"

    def depth(self, n_layers: int) -> int:
        return max(1, round(self.share[1] * n_layers))

    def begin(self, asked: Asked) -> tuple[Reading, Scoring]:
        first = round(self.share[0] * asked.n_layers)
        reading = contrast(asked, self.depth(asked.n_layers))
        shares = _shares(reading)

        def weigh(group: str, layer: int) -> float | None:
            return shares[group] if layer >= first else None

        return reading, _Contrast(asked.prompt, weigh, outliers=True)


@dataclass(frozen=True, slots=True)
class QRHead:
    """QRHead (arXiv 2506.09944): in-context re-ranking by the few heads that looked at the gold of examples."""

    calibration: Calibration | None = None
    aggregate: Aggregate = FAIR
    name: str = "qrhead"
    dilutes: bool = True
    n_lookahead: int = 0

    def depth(self, n_layers: int) -> int:
        return min(n_layers, 1 + max(layer for layer, _ in needed(self.calibration, self.name).heads))

    def begin(self, asked: Asked) -> tuple[Reading, Scoring]:
        chosen = needed(self.calibration, self.name).heads
        reading = contrast(asked, self.depth(asked.n_layers))
        shares = _shares(reading)
        n_heads = 1 + max(head for _, head in chosen)

        def weigh(group: str, layer: int) -> Float32 | None:
            weights = np.zeros(n_heads, np.float32)
            weights[[head for of, head in chosen if of == layer]] = shares[group]
            return weights if weights.any() else None

        return reading, _Contrast(asked.prompt, weigh)


@dataclass(frozen=True, slots=True)
class EvidenceHeads:
    """A learned weight for each layer, head and group of queries, each difference in units of its spread over the
    prompt's units; the drafter runs as deep as the deepest head that has a weight."""

    weights: HeadWeights
    name: str = "evidence-heads"
    dilutes: bool = False
    n_lookahead: int = 0

    @property
    def aggregate(self) -> Aggregate:
        return Aggregate(Kind.SUM, self.weights.power)

    def depth(self, n_layers: int) -> int:
        return min(n_layers, self.weights.depth)

    def begin(self, asked: Asked) -> tuple[Reading, Scoring]:
        weights = self.weights
        reading = contrast(asked, self.depth(asked.n_layers))
        return reading, _Contrast(asked.prompt, weights.of, spread_power=weights.power)


def contrast(asked: Asked, n_layers: int) -> Reading:
    """Evidence groups and the null query.

    Raises:
        EngineUnavailable: the prompt has no code before its evidence.
    """
    aside = null_aside(asked.prompt, asked.tokenizer)
    if not aside.at:
        raise EngineUnavailable("the prompt holds no code before the request", hint="take another --scorer")
    return Reading(evidence_groups(asked.prompt), n_layers, aside)


def _shares(reading: Reading) -> dict[str, float]:
    """Of all queries, those in each group: by these the mean rows of groups add up to that of all queries."""
    total = sum(len(group.tokens) for group in reading.groups)
    return {group.name: len(group.tokens) / total for group in reading.groups}


@dataclass(slots=True)
class _Contrast(AttentionOnly):
    """Adds weighted differences up, layer by layer.

    `spread_power`: the differences of a head are divided by the standard deviation of their unit sums / size^power.
    `outliers`: values more than two standard deviations below the mean of their unit become 0.
    """

    prompt: TokenizedPrompt
    weigh: Weigh
    spread_power: float | None = None
    outliers: bool = False
    null: dict[tuple[str, int], Float32] = field(default_factory=dict)
    end: int = field(init=False)  # of the code
    total: Float32 = field(init=False)

    def __post_init__(self) -> None:
        self.end = code_end(self.prompt)
        self.total = np.zeros(self.prompt.n_tokens, np.float32)

    def rows(self, group: str, layer: int, rows: Float32) -> None:
        end = self.end
        if group in (NULL, NULL_REQUEST):
            self.null[group, layer] = rows[:, :end]
            return
        weights = self.weigh(group, layer)
        if weights is None:
            return
        difference = rows[:, :end] - self.null[null_of(group), layer]
        if isinstance(weights, float):
            self.total[:end] += np.float32(weights) * difference.sum(axis=0)
            return
        difference = difference[: len(weights)]
        if self.spread_power is not None:
            weights = weights / spread(difference, self.prompt, self.spread_power)
        self.total[:end] += weights @ difference

    def values(self) -> Float32:
        return without_outliers(self.total, self.prompt) if self.outliers else self.total


def unit_sums(rows: Float32, starts: np.ndarray) -> Float32:
    """float32 (H, U): sums of rows (H, T) over units that begin at `starts` (U+1,), empty ones included."""
    sums = np.zeros((rows.shape[0], rows.shape[1] + 1), np.float64)
    np.cumsum(rows, axis=1, dtype=np.float64, out=sums[:, 1:])
    found: Float32 = (sums[:, starts[1:]] - sums[:, starts[:-1]]).astype(np.float32)
    return found


def spread(difference: Float32, prompt: TokenizedPrompt, power: float) -> Float32:
    """float32 (H,): standard deviation, over the units of the code, of each head's unit sums / size^power."""
    n_units = int(np.searchsorted(prompt.unit_starts, difference.shape[1]))
    starts = prompt.unit_starts[: n_units + 1]
    return spread_of(unit_features(difference, starts, power), starts)


def unit_features(difference: Float32, starts: np.ndarray, power: float) -> Float32:
    """float32 (H, U): unit sums / size^power, 0 for empty units."""
    sizes = np.maximum(np.diff(starts), 1).astype(np.float32)
    found: Float32 = unit_sums(difference, starts) / sizes ** np.float32(power)
    return found


def spread_of(features: Float32, starts: np.ndarray) -> Float32:
    """float32 (H,): standard deviation of features over the units that aren't empty."""
    found: Float32 = np.maximum(features[:, np.diff(starts) > 0].std(axis=1), np.float32(1e-12))
    return found


def without_outliers(values: Float32, prompt: TokenizedPrompt) -> Float32:
    """The values with those far below the mean of their unit set to 0."""
    starts = prompt.unit_starts[:-1][np.diff(prompt.unit_starts) > 0]
    sizes = np.diff(np.append(starts, prompt.n_tokens))
    wide = values.astype(np.float64)
    mean = np.add.reduceat(wide, starts) / sizes
    square = np.add.reduceat((wide - np.repeat(mean, sizes)) ** 2, starts) / sizes
    kept = wide >= np.repeat(mean - 2 * np.sqrt(square), sizes)
    return np.where(kept, values, np.float32(0))
