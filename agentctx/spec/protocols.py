"""Drafter, Engine and Session: what the pipeline asks of a model library. No library is named here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from agentctx.prompt import (
    ChatFrame,
    Completion,
    Conversation,
    Float32,
    Int32,
    ModelInfo,
    SparsePrompt,
    Tokenizer,
)
from agentctx.spec.prefix import PrefixStore
from agentctx.spec.reading import ReadFacts, Reading, Sink

__all__ = [
    "ChatFrame",
    "Drafter",
    "Engine",
    "EngineCaps",
    "Hear",
    "ModelInfo",
    "SampleParams",
    "Sampler",
    "ServedModel",
    "Session",
    "TextEngine",
    "TextSession",
    "TextUsage",
]


@dataclass(frozen=True, slots=True)
class SampleParams:
    """`temperature` 0 is greedy. Sample i of n draws from its own generator, seeded `seed + i`."""

    max_new: int = 512
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()  # generation ends after the first of these in the new text
    past_eos: bool = False  # what ends an answer is a token like any other: answers of one length, to measure


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

    @property
    def form(self) -> str:
        """What its weights and keys are held in, and where: 'float32 on cpu'. Another form reads other values."""

    def read(self, ids: Int32, reading: Reading, sink: Sink, store: PrefixStore | None = None) -> ReadFacts:
        """Run the prompt, int32 (T,), and give what the reading asks for to the sink.

        Args:
            store: prefixes of this drafter's weights, to take the prompt's beginning from and to put it into.

        Raises:
            EngineUnavailable: the prompt exceeds the model's context, or holds tokens that it doesn't know.
            ConfigError: the reading asks for more layers than there are.
        """


Hear = Callable[[int, str], None]  # (sample, the next piece of its text)


class Sampler(Protocol):
    """Whatever answers one prompt."""

    def sample(self, n: int, params: SampleParams, hear: Hear | None = None) -> list[Completion]:
        """n completions of the one prompt.

        Args:
            hear: is told every piece of text as it is written; by an engine that doesn't stream, each text at its
                end. The pieces of a sample are its text. Greedy samples are one: of those only the first is heard.
        """


class Session(Sampler, Protocol):
    """One prefilled prompt. Sampling does not change it."""

    @property
    def prefill_seconds(self) -> float: ...

    @property
    def n_cached(self) -> int | None:
        """Tokens of the prompt that a prefix cache of the engine held; None where it isn't told."""

    @property
    def logits(self) -> Float32:
        """float32 (V,): for the token after the prompt, up to a constant.

        Raises EngineUnavailable where `EngineCaps.logprobs` is False.
        """

    def extend(self, ids: Sequence[int]) -> Float32:
        """float32 (len(ids), V): logits after each of `ids`, placed from the original length on; not stored."""

    def sample(self, n: int, params: SampleParams, hear: Hear | None = None) -> list[Completion]:
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

    @property
    def form(self) -> str | None:
        """What its weights are held in, and where; None where that isn't told."""

    def prefill(self, prompt: SparsePrompt, *, chunk: int = 512) -> Session:
        """Prefill the kept tokens at their original positions."""


# ---------------------------------------------------------------- servers that take text


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model behind a server. `host` is its name and port, never the whole address."""

    name: str  # the server's name for it
    host: str
    is_local: bool  # the server runs on this machine: a loopback address
    context: int | None = None  # tokens; None: the server doesn't say


@dataclass(frozen=True, slots=True)
class TextUsage:
    """What is known of the first request: seconds to its first token, and the server's own counts (None: not said)."""

    ttft: float | None = None
    decode_tokens_per_second: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None


class TextSession(Sampler, Protocol):
    """One conversation. Every sample is asked for anew; whether prefill is shared is the server's business."""

    @property
    def usage(self) -> TextUsage: ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What the server would not do, in sentences."""


class TextEngine(Protocol):
    """A server that takes text: it tokenizes by itself, and every prompt is contiguous for it."""

    @property
    def served(self) -> ServedModel: ...

    @property
    def load_seconds(self) -> float:
        """To connect and to ask for the server's models."""

    def open(self, conversation: Conversation) -> TextSession:
        """Sends nothing yet."""
