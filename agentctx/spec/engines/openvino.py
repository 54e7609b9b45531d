"""The main model on OpenVINO, for CPUs, with weights of 8 or 4 bits. Import it through `engines.load`.

It runs an export (`agentctx models fetch NAME --engine openvino`). Attention can't be looked into there, so the drafter
stays on torch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agentctx.prompt import Float32, SparsePrompt, Tokenizer, readonly
from agentctx.spec.engines.folder import eos_ids, read_config
from agentctx.spec.engines.limits import check_sparse, embedded_caps
from agentctx.spec.engines.modules import form_of
from agentctx.spec.engines.openvino_model import OpenVinoModel, Run, State, bytes_per_token, load_model
from agentctx.spec.engines.session import HeldSession
from agentctx.spec.protocols import ChatFrame, EngineCaps, ModelInfo


@dataclass(frozen=True, slots=True, eq=False)
class OpenVinoEngine:
    """Implements `protocols.Engine`."""

    info: ModelInfo
    tokenizer: Tokenizer
    chat: ChatFrame
    load_seconds: float
    model: OpenVinoModel
    eos: frozenset[int]

    @property
    def form(self) -> str:
        return form_of(self.model.weights, "cpu")

    @property
    def caps(self) -> EngineCaps:
        return embedded_caps(self.info)

    def prefill(self, prompt: SparsePrompt, *, chunk: int = 512) -> HeldSession:
        check_sparse(self.info, prompt)
        started = time.perf_counter()
        run = self.model.run()
        logits = run.prefill(prompt.ids, prompt.positions, chunk)
        held = _Held(self.model, run.state())
        return HeldSession(self, prompt.total, held, readonly(logits), time.perf_counter() - started)


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """Implements `session.Held`. Every branch is a new request that starts with a copy of the state."""

    model: OpenVinoModel
    state: State

    @property
    def n_tokens(self) -> int:
        return self.state.length

    @property
    def bytes_per_token(self) -> int:
        return bytes_per_token(tuple(self.state.arrays.values()), self.state.length)

    def branch(self, rows: int, extra: int) -> _Branch:
        return _Branch(self.model.run(self.state, rows))


@dataclass(frozen=True, slots=True, eq=False)
class _Branch:
    """Implements `session.Branch`."""

    run: Run

    def forward(self, ids: Sequence[Sequence[int]], position: int) -> Float32:
        n = len(ids[0])
        return self.run.forward(ids, np.arange(position, position + n), last=n)

    def keep(self, rows: Sequence[int]) -> None:
        self.run.beams = [self.run.beams[row] for row in rows]


def load_engine(folder: Path, name: str, *, tokenizer: Tokenizer, chat: ChatFrame, info: ModelInfo) -> OpenVinoEngine:
    """An engine on the export of the model in `folder`. Raises ModelUnavailable, NotEnoughMemory, EngineUnavailable."""
    started = time.perf_counter()
    model = load_model(folder, name)
    eos = eos_ids(folder, read_config(folder), tokenizer)
    return OpenVinoEngine(info, tokenizer, chat, time.perf_counter() - started, model, eos)
