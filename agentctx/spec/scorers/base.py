"""What a scorer is: it says what to read out of a drafter, and makes one value per prompt token of that. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt

from agentctx.prompt import Float32, TokenizedPrompt, Tokenizer
from agentctx.spec.protocols import Drafter
from agentctx.spec.reading import Reading, Sink

Float64 = npt.NDArray[np.float64]


class Units(Protocol):
    """Values of tokens, float32 (T,) -> scores of units, float64 (U,), higher is better."""

    def __call__(self, tokenized: TokenizedPrompt, values: Float32) -> Float64: ...


class Kind(StrEnum):
    """How the values of a unit's tokens become one."""

    SUM = "sum"
    MAX = "max"
    TOP = "top"  # the mean of its `TOP_TOKENS` highest values, or of all where it has fewer


TOP_TOKENS = 8


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`power`: a sum is divided by size^power. 1 is the mean, 0 the bare sum, which favours long units."""

    kind: Kind = Kind.SUM
    power: float = 1.0

    @property
    def name(self) -> str:
        return f"sum/size^{self.power:g}" if self.kind is Kind.SUM else self.kind.value

    def __call__(self, tokenized: TokenizedPrompt, values: Float32) -> Float64:
        """float64 (U,): the score of each unit; 0 for a unit without tokens.

        Raises:
            ValueError: not one finite value per token.
        """
        found = np.asarray(values, dtype=np.float64)
        if found.shape != (tokenized.n_tokens,) or not np.isfinite(found).all():
            raise ValueError(f"{found.shape} scores for {tokenized.n_tokens} tokens, or not all finite")
        starts, sizes = tokenized.unit_starts[:-1], np.diff(tokenized.unit_starts)
        out = np.zeros(len(sizes))
        filled = sizes > 0
        if filled.any():
            out[filled] = self._filled(found, starts[filled], sizes[filled])
        return out

    def _filled(self, values: Float64, starts: npt.NDArray[np.int32], sizes: npt.NDArray[np.int32]) -> Float64:
        if self.kind is Kind.MAX:
            peaks: Float64 = np.maximum.reduceat(values, starts)
            return peaks
        if self.kind is Kind.TOP:
            parts = (np.sort(values[a : a + n])[-TOP_TOKENS:] for a, n in zip(starts, sizes, strict=True))
            return np.array([part.mean() for part in parts])
        sums: Float64 = np.add.reduceat(values, starts)
        return sums / sizes.astype(np.float64) ** self.power


MEAN = Aggregate()


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A prompt, the tokenizer that made its tokens, and how many layers the drafter's model has: all of them where only
    the first are loaded, since scorers read a share of the whole."""

    prompt: TokenizedPrompt
    tokenizer: Tokenizer
    n_layers: int

    @classmethod
    def of(cls, drafter: Drafter, prompt: TokenizedPrompt) -> Asked:
        return cls(prompt, drafter.tokenizer, drafter.info.whole_layers)


class AttentionOnly:
    """A sink of a scorer that asks for no states."""

    __slots__ = ()

    def hidden(self, depth: int, states: Float32) -> None:
        raise ValueError("hidden states weren't asked for")


class Scoring(Sink, Protocol):
    """The scoring of one prompt: takes what is read, and then gives the values."""

    def values(self) -> Float32:
        """float32 (T,)"""


@dataclass(frozen=True, slots=True)
class Shallow:
    """A scorer on a drafter that has only its first `layers` layers."""

    base: Scorer
    layers: int

    @property
    def name(self) -> str:
        return self.base.name

    @property
    def aggregate(self) -> Units:
        return self.base.aggregate

    @property
    def dilutes(self) -> bool:
        return self.base.dilutes

    @property
    def n_lookahead(self) -> int:
        return self.base.n_lookahead

    def depth(self, n_layers: int) -> int:
        return self.base.depth(min(n_layers, self.layers))

    def begin(self, asked: Asked) -> tuple[Reading, Scoring]:
        return self.base.begin(replace(asked, n_layers=min(asked.n_layers, self.layers)))


class Scorer(Protocol):
    """`dilutes`: its values are shares of attention, which get smaller as the prompt gets longer."""

    @property
    def name(self) -> str: ...

    @property
    def aggregate(self) -> Units: ...

    @property
    def dilutes(self) -> bool: ...

    @property
    def n_lookahead(self) -> int:
        """Look-ahead steps, the one of the last prompt token included; 0 = none."""

    def depth(self, n_layers: int) -> int:
        """Layers that run, of a drafter with so many."""

    def begin(self, asked: Asked) -> tuple[Reading, Scoring]:
        """What to read, and where it goes."""
