"""The reference engine: numpy alone. Every other engine must agree with it; demonstrations and tests run on it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from agentctx.prompt import Float32, Int32, SparsePrompt, Tokenizer, readonly
from agentctx.spec.drive import Watch, drive
from agentctx.spec.engines.byte_tokenizer import BYTE_CHAT, END_OF_TURN, EOS, VOCAB_SIZE, ByteTokenizer
from agentctx.spec.engines.folder import eos_ids, read_config
from agentctx.spec.engines.limits import check_read, check_sparse, embedded_caps, layers_to_run
from agentctx.spec.engines.reference_load import load_decoder
from agentctx.spec.engines.reference_model import Array, Decoder, DecoderConfig, KeyValues, random_weights
from agentctx.spec.engines.session import HeldSession
from agentctx.spec.prefix import KnownPrefix, PrefixStore
from agentctx.spec.protocols import ChatFrame, EngineCaps, ModelInfo
from agentctx.spec.reading import Group, ReadFacts, Reading, Sink
from agentctx.spec.rows import NumpyWatch

__all__ = ["ByteTokenizer", "ReferenceDrafter", "ReferenceEngine", "drafter_from", "tiny_engine"]


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceEngine:
    """Implements `protocols.Engine`."""

    info: ModelInfo
    tokenizer: Tokenizer
    chat: ChatFrame
    load_seconds: float
    decoder: Decoder
    eos: frozenset[int]

    @property
    def form(self) -> str:
        return self.decoder.form

    @property
    def caps(self) -> EngineCaps:
        return embedded_caps(self.info)

    def prefill(self, prompt: SparsePrompt, *, chunk: int = 512) -> HeldSession:
        check_sparse(self.info, prompt)
        started = time.perf_counter()
        cache = KeyValues()
        logits = _prefill(self.decoder, prompt.ids, prompt.positions, cache, chunk)
        seconds = time.perf_counter() - started
        return HeldSession(self, prompt.total, _Held(self.decoder, cache), readonly(logits), seconds)


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """Implements `session.Held`. The cache is never changed: everything runs on forks."""

    decoder: Decoder
    cache: KeyValues

    @property
    def n_tokens(self) -> int:
        return self.cache.length

    @property
    def bytes_per_token(self) -> int:
        return sum(array.nbytes for array in (*self.cache.keys, *self.cache.values)) // self.cache.length

    def branch(self, rows: int, extra: int) -> _Branch:
        return _Branch(self.decoder, [self.cache.fork() for _ in range(rows)])


@dataclass(slots=True)
class _Branch:
    """Implements `session.Branch`."""

    decoder: Decoder
    caches: list[KeyValues]

    def forward(self, ids: Sequence[Sequence[int]], position: int) -> Float32:
        at = np.arange(position, position + len(ids[0]))
        rows = zip(ids, self.caches, strict=True)
        return np.stack([self.decoder.forward(np.asarray(row), at, cache) for row, cache in rows])

    def keep(self, rows: Sequence[int]) -> None:
        self.caches = [self.caches[row] for row in rows]


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceDrafter:
    """Implements `protocols.Drafter`."""

    info: ModelInfo
    tokenizer: Tokenizer
    load_seconds: float
    decoder: Decoder
    eos: frozenset[int]

    @property
    def form(self) -> str:
        return self.decoder.form

    def read(self, ids: Int32, reading: Reading, sink: Sink, store: PrefixStore | None = None) -> ReadFacts:
        check_read(self.info, ids, reading)
        started = time.perf_counter()
        n_layers = layers_to_run(self.info, reading.n_layers)
        n_steps, n_known = drive(_Runner(self.decoder, n_layers), ids, reading, self.eos, sink, store)
        return ReadFacts(n_layers, n_steps, time.perf_counter() - started, n_known)


@dataclass(slots=True)
class _Runner:
    """Implements `drive.Runner`."""

    decoder: Decoder
    n_layers: int
    cache: KeyValues = field(default_factory=KeyValues)

    @property
    def length(self) -> int:
        return self.cache.length

    def watch(self, groups: tuple[Group, ...], start: int, n_tokens: int) -> NumpyWatch:
        return NumpyWatch(groups, start, n_tokens)

    def advance(
        self, ids: Int32, watch: Watch, *, chunk: int, stop: bool, hidden: tuple[int, ...]
    ) -> dict[int, Float32]:
        found: dict[int, list[Float32]] = {depth: [] for depth in hidden}

        def after(depth: int, states: Array) -> None:
            if depth in found:
                found[depth].append(states.astype(np.float32))

        for start in range(0, len(ids), chunk):
            part = ids[start : start + chunk]
            at = np.arange(self.length, self.length + len(part))
            self.decoder.states(part, at, self.cache, n_layers=self.n_layers, watch=watch.see, after=after)
        return {depth: np.concatenate(own) for depth, own in found.items()}

    def step(self, token: int, watches: tuple[Watch, ...]) -> int:
        def see(layer: int, q: Array, keys: Array, scale: float) -> None:
            for watch in watches:
                watch.see(layer, q, keys, scale)

        at = np.asarray([self.length])
        logits = self.decoder.forward(np.asarray([token]), at, self.cache, n_layers=self.n_layers, watch=see)
        return int(np.argmax(logits[-1]))

    def rewind(self, length: int) -> None:
        self.cache = self.cache.first(length)

    def load(self, prefix: KnownPrefix) -> None:
        self.cache = KeyValues(list(prefix.keys), list(prefix.values))

    def known(self, ids: Int32, states: dict[int, Float32]) -> KnownPrefix:
        first = self.cache.first(len(ids))
        return KnownPrefix(ids, tuple(first.keys), tuple(first.values), states)


def _prefill(decoder: Decoder, ids: Int32, positions: Any, cache: KeyValues, chunk: int) -> Float32:
    """float32 (V,): logits after the last id. Mutates `cache`."""
    logits: Float32 = np.zeros(0, np.float32)
    for start in range(0, len(ids), chunk):
        part = slice(start, start + chunk)
        logits = decoder.forward(ids[part], positions[part], cache)[-1]
    return logits


# ---------------------------------------------------------------- making them


def load_engine(
    folder: Path, name: str, *, tokenizer: Tokenizer, chat: ChatFrame, info: ModelInfo, dtype: Any = np.float32
) -> ReferenceEngine:
    """An engine on the model in `folder`. Raises ModelUnavailable or EngineUnavailable."""
    started = time.perf_counter()
    decoder = load_decoder(folder, name, dtype)
    eos = eos_ids(folder, read_config(folder), tokenizer)
    return ReferenceEngine(info, tokenizer, chat, time.perf_counter() - started, decoder, eos)


def load_drafter(
    folder: Path, name: str, *, tokenizer: Tokenizer, info: ModelInfo, n_layers: int | None = None
) -> ReferenceDrafter:
    """A drafter of the first `n_layers` layers of the model in `folder` (None = all)."""
    engine = load_engine(folder, name, tokenizer=tokenizer, chat=ChatFrame(), info=info)
    return replace(drafter_from(engine, n_layers), load_seconds=engine.load_seconds)


def drafter_from(engine: ReferenceEngine, n_layers: int | None = None) -> ReferenceDrafter:
    """A drafter on the engine's own weights, of its first `n_layers` layers (None = all)."""
    n_layers = layers_to_run(engine.info, n_layers)
    info = engine.info.beginning(n_layers, engine.info.n_params)
    return ReferenceDrafter(info, engine.tokenizer, 0.0, engine.decoder, engine.eos)


def tiny_engine(
    seed: int = 0, config: DecoderConfig | None = None, *, name: str = "tiny", dtype: Any = np.float32
) -> ReferenceEngine:
    """A working engine without any file: random weights from `seed`, one token per byte."""
    config = config or DecoderConfig(VOCAB_SIZE, eos=(EOS, END_OF_TURN))
    decoder, tokenizer = Decoder(config, random_weights(config, seed, dtype)), ByteTokenizer()
    info = ModelInfo(
        name=name,
        folder="",
        n_layers=config.n_layers,
        n_params=decoder.n_params,
        hidden_size=config.hidden_size,
        n_heads=config.n_heads,
        n_kv_heads=config.n_kv_heads,
        head_dim=config.head_dim,
        vocab_size=config.vocab_size,
        max_position=config.max_position,
        tokenizer_digest=tokenizer.digest,
        architecture="reference",
        tied=config.tied,
    )
    return ReferenceEngine(info, tokenizer, BYTE_CHAT, 0.0, decoder, frozenset(config.eos))
