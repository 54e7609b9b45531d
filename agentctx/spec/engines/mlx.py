"""The engine for Apple Silicon: mlx-lm on a local folder. Import it through `engines.load`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentctx.prompt import Float32, Int32, SparsePrompt, Tokenizer, readonly
from agentctx.spec.drive import drive
from agentctx.spec.engines.folder import eos_ids, read_config
from agentctx.spec.engines.limits import check_read, check_sparse, embedded_caps, layers_to_run
from agentctx.spec.engines.mlx_cache import SeatedCache
from agentctx.spec.engines.mlx_load import load
from agentctx.spec.engines.mlx_model import MlxModel
from agentctx.spec.engines.mlx_runner import MlxRunner
from agentctx.spec.engines.session import HeldSession
from agentctx.spec.prefix import PrefixStore
from agentctx.spec.protocols import ChatFrame, EngineCaps, ModelInfo
from agentctx.spec.reading import ReadFacts, Reading, Sink


@dataclass(frozen=True, slots=True, eq=False)
class MlxEngine:
    """Implements `protocols.Engine`."""

    info: ModelInfo
    tokenizer: Tokenizer
    chat: ChatFrame
    load_seconds: float
    model: MlxModel
    eos: frozenset[int]

    @property
    def form(self) -> str:
        return self.model.form

    @property
    def caps(self) -> EngineCaps:
        return embedded_caps(self.info)

    def prefill(self, prompt: SparsePrompt, *, chunk: int = 512) -> HeldSession:
        check_sparse(self.info, prompt)
        started = time.perf_counter()
        cache = self.model.new_cache(len(prompt.ids))
        logits = self.model.prefill(prompt, cache, chunk)
        seconds = time.perf_counter() - started
        return HeldSession(self, prompt.total, _Held(self.model, cache), readonly(logits), seconds)


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """Implements `session.Held`. The cache is full and never written to."""

    model: MlxModel
    cache: list[SeatedCache]

    @property
    def n_tokens(self) -> int:
        return self.cache[0].used

    @property
    def bytes_per_token(self) -> int:
        return sum(layer.bytes_per_token for layer in self.cache)

    def branch(self, rows: int, extra: int) -> _Branch:
        return _Branch(self.model, self.model.fork(self.cache, rows, extra))


@dataclass(frozen=True, slots=True, eq=False)
class _Branch:
    """Implements `session.Branch`."""

    model: MlxModel
    cache: list[SeatedCache]

    def forward(self, ids: Sequence[Sequence[int]], position: int) -> Float32:
        return self.model.forward(ids, position, self.cache)

    def keep(self, rows: Sequence[int]) -> None:
        for layer in self.cache:
            layer.select(list(rows))


@dataclass(frozen=True, slots=True, eq=False)
class MlxDrafter:
    """Implements `protocols.Drafter`."""

    info: ModelInfo
    tokenizer: Tokenizer
    load_seconds: float
    model: MlxModel
    eos: frozenset[int]

    @property
    def form(self) -> str:
        return self.model.form

    def read(self, ids: Int32, reading: Reading, sink: Sink, store: PrefixStore | None = None) -> ReadFacts:
        check_read(self.info, ids, reading)
        started = time.perf_counter()
        n_layers = layers_to_run(self.info, reading.n_layers)
        runner = MlxRunner(self.model.first_layers(n_layers), reading.room(len(ids)))
        n_steps, n_known = drive(runner, ids, reading, self.eos, sink, store)
        return ReadFacts(n_layers, n_steps, time.perf_counter() - started, n_known)


def load_engine(folder: Path, name: str, *, tokenizer: Tokenizer, chat: ChatFrame, info: ModelInfo) -> MlxEngine:
    """An engine on the model in `folder`. Raises ModelUnavailable, NotEnoughMemory or EngineUnavailable."""
    started = time.perf_counter()
    model = load(folder, name, info)
    eos = eos_ids(folder, read_config(folder), tokenizer)
    return MlxEngine(info, tokenizer, chat, time.perf_counter() - started, model, eos)


def load_drafter(
    folder: Path, name: str, *, tokenizer: Tokenizer, info: ModelInfo, n_layers: int | None = None
) -> MlxDrafter:
    """The first `n_layers` layers (None = all) of the model in `folder`; no other layer is read."""
    started = time.perf_counter()
    layers = layers_to_run(info, n_layers)
    model = load(folder, name, info, n_layers=layers)
    eos = eos_ids(folder, read_config(folder), tokenizer)
    own = info.beginning(layers, model.n_params)
    return MlxDrafter(own, tokenizer, time.perf_counter() - started, model, eos)


def drafter_from(engine: MlxEngine, n_layers: int | None = None) -> MlxDrafter:
    """A drafter on the engine's own weights (no second copy), of its first `n_layers` layers (None = all)."""
    layers = layers_to_run(engine.info, n_layers)
    model = engine.model.first_layers(layers)
    info = engine.info.beginning(layers, model.n_params)
    return MlxDrafter(info, engine.tokenizer, 0.0, model, engine.eos)
