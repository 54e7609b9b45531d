"""The reference engine: numpy alone. Every other engine must agree with it; demonstrations and tests run on it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from agentctx.prompt import Completion, Float32, Int32, SparsePrompt, Tokenizer, readonly
from agentctx.spec.drive import Watch, drive
from agentctx.spec.engines.byte_tokenizer import BYTE_CHAT, END_OF_TURN, EOS, VOCAB_SIZE, ByteTokenizer
from agentctx.spec.engines.folder import eos_ids, read_config
from agentctx.spec.engines.limits import check_read, check_sparse, embedded_caps, layers_to_run, room_to_decode
from agentctx.spec.engines.reference_load import load_decoder
from agentctx.spec.engines.reference_model import Array, Decoder, DecoderConfig, KeyValues, random_weights
from agentctx.spec.engines.sampling import Decoding, generate
from agentctx.spec.prefix import KnownPrefix, PrefixStore
from agentctx.spec.protocols import ChatFrame, EngineCaps, ModelInfo, SampleParams
from agentctx.spec.reading import Group, ReadFacts, Reading, Sink
from agentctx.spec.rows import NumpyWatch

__all__ = ["ByteTokenizer", "ReferenceDrafter", "ReferenceEngine", "ReferenceSession", "drafter_from", "tiny_engine"]


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
    def caps(self) -> EngineCaps:
        return embedded_caps(self.info)

    def prefill(self, prompt: SparsePrompt, *, chunk: int = 512) -> ReferenceSession:
        check_sparse(self.info, prompt)
        started = time.perf_counter()
        cache = KeyValues()
        logits = _prefill(self.decoder, prompt.ids, prompt.positions, cache, chunk)
        return ReferenceSession(self, prompt.total, cache, readonly(logits), time.perf_counter() - started)


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceSession:
    """Implements `protocols.Session`. The cache is never changed: everything runs on forks."""

    engine: ReferenceEngine
    total: int
    cache: KeyValues
    logits: Float32
    prefill_seconds: float
    n_cached: int | None = 0  # it has no prefix cache

    def extend(self, ids: Sequence[int]) -> Float32:
        if not ids:
            return np.zeros((0, len(self.logits)), np.float32)
        positions = np.arange(self.total, self.total + len(ids))
        return self.engine.decoder.forward(np.asarray(ids), positions, self.cache.fork())

    def sample(self, n: int, params: SampleParams) -> list[Completion]:
        engine = self.engine
        decoding = Decoding(
            open_rows=lambda rows, _: _Rows(engine.decoder, [self.cache.fork() for _ in range(rows)], self.total),
            decode=engine.tokenizer.decode,
            eos=engine.eos,
            room=room_to_decode(engine.info, self.total),
            batch=n,
        )
        return generate(self.logits, n, params, decoding)


@dataclass(slots=True)
class _Rows:
    decoder: Decoder
    caches: list[KeyValues]
    position: int

    def step(self, tokens: Sequence[int]) -> Float32:
        at = np.asarray([self.position])
        rows = zip(tokens, self.caches, strict=True)
        out = [self.decoder.forward(np.asarray([token]), at, cache) for token, cache in rows]
        self.position += 1
        return np.concatenate(out)

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
    info = replace(engine.info, n_layers=n_layers)
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
