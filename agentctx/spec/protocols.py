"""Drafter, Engine and Session: what the pipeline asks of a model library. No library is named here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agentctx.prompt import (
    ChatFrame,
    Completion,
    Float32,
    ModelInfo,
    SparsePrompt,
    TokenizedPrompt,
    Tokenizer,
    TokenScores,
)

__all__ = [
    "ChatFrame",
    "Drafter",
    "Engine",
    "EngineCaps",
    "ModelInfo",
    "SampleParams",
    "ScoreOptions",
    "Session",
]


@dataclass(frozen=True, slots=True)
class ScoreOptions:
    """Knobs of SpecPrefill (arXiv 2502.02789; the defaults are its "Full" setting).

    `n_layers`: early exit, None = the whole drafter.
    """

    n_lookahead: int = 8  # queries: the last prompt token, then generated tokens
    pool: int = 13
    n_layers: int | None = None
    chunk: int = 512  # tokens per forward while prefilling


@dataclass(frozen=True, slots=True)
class SampleParams:
    """`temperature` 0 is greedy. Sample i of n draws from its own generator, seeded `seed + i`."""

    max_new: int = 512
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()  # generation ends after the first of these in the new text


@dataclass(frozen=True, slots=True)
class EngineCaps:
    keeps_positions: bool
    shared_prefill: bool
    logprobs: bool
    max_position: int
    tokenizer_digest: str


class Drafter(Protocol):
    @property
    def info(self) -> ModelInfo: ...

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def load_seconds(self) -> float: ...

    def score(self, prompt: TokenizedPrompt, options: ScoreOptions) -> TokenScores:
        """Scores of all T tokens. Raises EngineUnavailable when the prompt exceeds the model's context."""


class Session(Protocol):
    """One prefilled prompt. Sampling does not change it."""

    @property
    def prefill_seconds(self) -> float: ...

    @property
    def logits(self) -> Float32:
        """float32 (V,): for the token after the prompt."""

    def extend(self, ids: Sequence[int]) -> Float32:
        """float32 (len(ids), V): logits after each of `ids`, placed from the original length on; not stored."""

    def sample(self, n: int, params: SampleParams) -> list[Completion]:
        """n completions from this one prefill. Deterministic for equal params."""


class Engine(Protocol):
    @property
    def info(self) -> ModelInfo: ...

    @property
    def caps(self) -> EngineCaps: ...

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def chat(self) -> ChatFrame: ...

    @property
    def load_seconds(self) -> float: ...

    def prefill(self, prompt: SparsePrompt, *, chunk: int = 512) -> Session:
        """Prefill the kept tokens at their original positions."""
