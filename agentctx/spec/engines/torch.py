"""The embedded default engine: PyTorch and transformers on a local folder. Import it through `engines.load`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentctx.prompt import Float32, Int32, SparsePrompt, Tokenizer, readonly
from agentctx.spec.drive import drive
from agentctx.spec.engines import torch_cache
from agentctx.spec.engines.folder import eos_ids, read_config
from agentctx.spec.engines.limits import (
    check_read,
    check_sparse,
    embedded_caps,
    layers_to_run,
)
from agentctx.spec.engines.modules import Device
from agentctx.spec.engines.session import HeldSession
from agentctx.spec.engines.torch_layers import check_sight
from agentctx.spec.engines.torch_model import TorchModel, load_model
from agentctx.spec.engines.torch_runner import TorchRunner
from agentctx.spec.prefix import PrefixStore
from agentctx.spec.protocols import ChatFrame, EngineCaps, ModelInfo
from agentctx.spec.reading import ReadFacts, Reading, Sink

CHUNK = 512  # tokens per forward


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
    def form(self) -> str:
        return self.model.form

    @property
    def caps(self) -> EngineCaps:
        return embedded_caps(self.info)

    def prefill(self, prompt: SparsePrompt, *, chunk: int | None = None) -> HeldSession:
        """`chunk`: tokens per forward; None: CHUNK, or what `TorchModel.forward_size` says of this device."""
        check_sparse(self.info, prompt)
        started = time.perf_counter()
        model = self.model.for_length(prompt.total)
        chunk = chunk or model.forward_size(len(prompt.ids), CHUNK)
        cache = model.new_cache(len(prompt.ids))
        logits = model.prefill(prompt.ids, prompt.positions, cache, chunk)
        seconds = time.perf_counter() - started
        # A short prompt of a LongRoPE model ends where its frequencies would change, and with them those of all keys.
        short = self.model.short_reach
        reach = short if short is not None and prompt.total <= short else None
        return HeldSession(self, prompt.total, _Held(model, cache), readonly(logits), seconds, reach)


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """Implements `session.Held`. The cache is full and never written to."""

    model: TorchModel  # the engine's, for a prompt of this length
    cache: Any

    @property
    def n_tokens(self) -> int:
        return int(self.cache.get_seq_length())

    @property
    def bytes_per_token(self) -> int:
        return self.model.bytes_per_token

    def branch(self, rows: int, extra: int) -> _Branch:
        return _Branch(self.model, self.model.fork(self.cache, rows, extra))


@dataclass(frozen=True, slots=True, eq=False)
class _Branch:
    """Implements `session.Branch`."""

    model: TorchModel
    cache: Any

    def forward(self, ids: Sequence[Sequence[int]], position: int) -> Float32:
        n = len(ids[0])
        return self.model.forward(ids, [range(position, position + n)], self.cache, last=n)

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

    @property
    def form(self) -> str:
        return self.model.form

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
    place: Device | None = None,
) -> TorchEngine:
    """An engine on the model in `folder`, at `place` (None: where it runs by itself).

    Raises ModelUnavailable, NotEnoughMemory or EngineUnavailable.
    """
    started = time.perf_counter()
    model = load_model(folder, name, place=place)
    eos = eos_ids(folder, read_config(folder), tokenizer)
    return TorchEngine(info, tokenizer, chat, time.perf_counter() - started, model, eos)


def load_drafter(
    folder: Path,
    name: str,
    *,
    tokenizer: Tokenizer,
    info: ModelInfo,
    n_layers: int | None = None,
    place: Device | None = None,
) -> TorchDrafter:
    """The first `n_layers` layers (None = all) of the model in `folder`; no other layer is read.

    `place`: see `load_engine`.
    """
    started = time.perf_counter()
    layers = layers_to_run(info, n_layers)
    model = load_model(folder, name, n_layers=None if n_layers is None else layers, place=place)
    eos = eos_ids(folder, read_config(folder), tokenizer)
    own = info.beginning(layers, model.n_params)
    return TorchDrafter(own, tokenizer, time.perf_counter() - started, model, eos)


def drafter_from(engine: TorchEngine, n_layers: int | None = None) -> TorchDrafter:
    """A drafter on the engine's own weights (no second copy), of its first `n_layers` layers (None = all)."""
    layers = layers_to_run(engine.info, n_layers)
    model = engine.model.first_layers(layers)
    info = engine.info.beginning(layers, model.n_params)
    return TorchDrafter(info, engine.tokenizer, 0.0, model, engine.eos)
