"""The embedded default engine: PyTorch and transformers on a local folder. Import it through `engines.load`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from agentctx.errors import EngineUnavailable
from agentctx.prompt import Completion, Float32, Int32, SparsePrompt, Tokenizer, readonly
from agentctx.spec.drive import drive
from agentctx.spec.engines import torch_cache
from agentctx.spec.engines.folder import eos_ids, read_config
from agentctx.spec.engines.limits import (
    check_read,
    check_sparse,
    embedded_caps,
    layers_to_run,
    room_to_decode,
)
from agentctx.spec.engines.sampling import Decoding, generate, rows_at_once
from agentctx.spec.engines.torch_layers import check_sight
from agentctx.spec.engines.torch_model import TorchModel, load_model
from agentctx.spec.engines.torch_runner import TorchRunner
from agentctx.spec.prefix import PrefixStore
from agentctx.spec.protocols import ChatFrame, EngineCaps, ModelInfo, SampleParams
from agentctx.spec.reading import ReadFacts, Reading, Sink


@dataclass(frozen=True, slots=True, eq=False)
class TorchEngine:
    """Implements `protocols.Engine`."""

    info: ModelInfo
    tokenizer: Tokenizer
    chat: ChatFrame
    load_seconds: float
    model: TorchModel
    eos: frozenset[int]

    @property
    def caps(self) -> EngineCaps:
        return embedded_caps(self.info)

    def prefill(self, prompt: SparsePrompt, *, chunk: int = 512) -> TorchSession:
        check_sparse(self.info, prompt)
        started = time.perf_counter()
        model = self.model.for_length(prompt.total)
        cache = model.new_cache(len(prompt.ids))
        logits = model.prefill(prompt.ids, prompt.positions, cache, chunk)
        return TorchSession(self, model, prompt.total, cache, readonly(logits), time.perf_counter() - started)


@dataclass(frozen=True, slots=True, eq=False)
class TorchSession:
    """Implements `protocols.Session`. The cache is full and never written to: everything runs on copies of it."""

    engine: TorchEngine
    model: TorchModel  # the engine's, for a prompt of this length
    total: int
    cache: Any
    logits: Float32
    prefill_seconds: float
    n_cached: int | None = 0  # it has no prefix cache

    @property
    def room(self) -> int:
        """Tokens that can be generated. A short prompt of a LongRoPE model ends where its frequencies would change, and
        with them those of all keys in the cache."""
        room = room_to_decode(self.engine.info, self.total)
        reach = self.engine.model.short_reach
        return min(room, reach - self.total + 1) if reach is not None and self.total <= reach else room

    def extend(self, ids: Sequence[int]) -> Float32:
        if not ids:
            return np.zeros((0, len(self.logits)), np.float32)
        if len(ids) > self.room:
            raise EngineUnavailable(
                f"{len(ids)} tokens don't fit behind the {self.total} positions of the prompt",
                hint=f"{self.engine.info.name} has room for {self.room}",
            )
        cache = self.model.fork(self.cache, 1, len(ids))
        positions = np.arange(self.total, self.total + len(ids))
        logits: Float32 = self.model.forward([ids], [positions], cache, last=len(ids))[0]
        return logits

    def sample(self, n: int, params: SampleParams) -> list[Completion]:
        engine, model, room = self.engine, self.model, self.room
        n_tokens = self.cache.get_seq_length() + min(params.max_new, room)
        decoding = Decoding(
            open_rows=lambda rows, extra: _Rows(model, model.fork(self.cache, rows, extra), self.total),
            decode=engine.tokenizer.decode,
            eos=engine.eos,
            room=room,
            batch=rows_at_once(model.bytes_per_token, n_tokens),
        )
        return generate(self.logits, n, params, decoding)


@dataclass(slots=True)
class _Rows:
    model: TorchModel
    cache: Any
    position: int

    def step(self, tokens: Sequence[int]) -> Float32:
        logits = self.model.forward([[token] for token in tokens], [[self.position]], self.cache)
        self.position += 1
        last: Float32 = logits[:, -1]
        return last

    def keep(self, rows: Sequence[int]) -> None:
        torch_cache.select(self.cache, list(rows))


@dataclass(frozen=True, slots=True, eq=False)
class TorchDrafter:
    """Implements `protocols.Drafter`."""

    info: ModelInfo
    tokenizer: Tokenizer
    load_seconds: float
    model: TorchModel
    eos: frozenset[int]

    def read(self, ids: Int32, reading: Reading, sink: Sink, store: PrefixStore | None = None) -> ReadFacts:
        """Also raises EngineUnavailable where every layer slides over less than the prompt."""
        check_read(self.info, ids, reading)
        started = time.perf_counter()
        n_layers = layers_to_run(self.info, reading.n_layers)
        room = reading.room(len(ids))
        model = self.model.first_layers(n_layers).for_length(room)
        if self.model.short_reach is not None:
            store = None  # the keys of a beginning depend on the length of what follows
        check_sight(self.info.name, model.kinds, reading, room)
        runner = TorchRunner(model, room)
        n_steps, n_known = drive(runner, ids, reading, self.eos, sink, store)
        n_blind = sum(not kind.sees_all(room) for kind in model.kinds)
        return ReadFacts(n_layers, n_steps, time.perf_counter() - started, n_known, n_blind)


def load_engine(
    folder: Path,
    name: str,
    *,
    tokenizer: Tokenizer,
    chat: ChatFrame,
    info: ModelInfo,
    device: str | None = None,
) -> TorchEngine:
    """An engine on the model in `folder`. Raises ModelUnavailable, NotEnoughMemory or EngineUnavailable."""
    started = time.perf_counter()
    model = load_model(folder, name, device=device)
    eos = eos_ids(folder, read_config(folder), tokenizer)
    return TorchEngine(info, tokenizer, chat, time.perf_counter() - started, model, eos)


def load_drafter(
    folder: Path,
    name: str,
    *,
    tokenizer: Tokenizer,
    info: ModelInfo,
    n_layers: int | None = None,
    device: str | None = None,
) -> TorchDrafter:
    """The first `n_layers` layers (None = all) of the model in `folder`; no other layer is read."""
    started = time.perf_counter()
    layers = layers_to_run(info, n_layers)
    model = load_model(folder, name, n_layers=None if n_layers is None else layers, device=device)
    eos = eos_ids(folder, read_config(folder), tokenizer)
    own = replace(info, n_layers=layers, n_params=model.n_params)
    return TorchDrafter(own, tokenizer, time.perf_counter() - started, model, eos)


def drafter_from(engine: TorchEngine, n_layers: int | None = None) -> TorchDrafter:
    """A drafter on the engine's own weights (no second copy), of its first `n_layers` layers (None = all)."""
    layers = layers_to_run(engine.info, n_layers)
    model = engine.model.first_layers(layers)
    info = replace(engine.info, n_layers=layers, n_params=model.n_params)
    return TorchDrafter(info, engine.tokenizer, 0.0, model, engine.eos)
