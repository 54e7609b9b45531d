"""The prompt in tokens: encoded, scored, and what the main model prefills. Pure data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from agentctx.prompt.arrays import Float32, Int32
from agentctx.prompt.document import PromptDocument
from agentctx.spans import TokenSpan


class Tokenizer(Protocol):
    """A tokenizer with byte offsets."""

    @property
    def name(self) -> str:
        """For the report: the model's name, the file, or 'estimate'."""

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over vocabulary, merges, pre-tokenizer and special tokens. Equal digests: equal ids."""

    def encode(self, text: str, *, special: bool = False) -> tuple[list[int], list[int]]:
        """Ids, and for each the UTF-8 byte offset where it starts.

        With `special` the text may hold special tokens (chat scaffolding); without, such strings are
        encoded as ordinary text, so that repository code can't forge a chat turn.
        """

    def count_batch(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens of each text (encoded as ordinary text)."""

    def decode(self, ids: Sequence[int]) -> str: ...


@dataclass(frozen=True, slots=True, eq=False)
class TokenizedPrompt:
    """Each unit is encoded by itself, so a token belongs to exactly one unit and counts add up."""

    document: PromptDocument
    ids: Int32  # int32 (T,)
    starts: Int32  # int32 (T+1,) byte offsets in document.text; starts[T] == len(text)
    unit_starts: Int32  # int32 (U+1,) token offsets of the units
    tokenizer: str = ""
    tokenizer_digest: str = ""

    @property
    def n_tokens(self) -> int:
        return int(self.ids.shape[0])

    def unit_tokens(self, unit: int) -> TokenSpan:
        return TokenSpan(int(self.unit_starts[unit]), int(self.unit_starts[unit + 1]))


@dataclass(frozen=True, slots=True, eq=False)
class TokenScores:
    """A drafter's importance of every prompt token."""

    values: Float32  # float32 (T,)
    drafter: str
    scorer: str
    n_layers: int  # layers that ran
    seconds: float
    n_lookahead: int = 0
    n_known: int = 0  # tokens whose keys and values the drafter had from a run before


@dataclass(frozen=True, slots=True, eq=False)
class SparsePrompt:
    """What the main model prefills: kept ids at their original positions."""

    ids: Int32  # int32 (K,)
    positions: Int32  # int32 (K,) strictly increasing, < total
    total: int  # the original length; decoding continues at this position

    def __post_init__(self) -> None:
        if self.ids.shape != self.positions.shape or self.ids.ndim != 1 or not len(self.ids):
            raise ValueError("ids and positions must be equally long, one-dimensional and not empty")
        if (np.diff(self.positions) <= 0).any() or self.positions[0] < 0 or self.positions[-1] >= self.total:
            raise ValueError("positions must increase strictly within 0..total")

    def runs(self) -> tuple[tuple[int, int, int], ...]:
        """Maximal contiguous runs as (first kept index, end kept index, original position of the first)."""
        cuts = np.flatnonzero(np.diff(self.positions) != 1) + 1
        edges = [0, *cuts.tolist(), len(self.ids)]
        return tuple((a, b, int(self.positions[a])) for a, b in pairwise(edges))
