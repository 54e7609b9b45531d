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

from agentctx.prompt import Completion, Float32, SparsePrompt, Tokenizer, readonly
from agentctx.spec.engines.folder import eos_ids, read_config
from agentctx.spec.engines.limits import check_sparse, embedded_caps, room_to_decode
from agentctx.spec.engines.openvino_model import OpenVinoModel, Run, State, bytes_per_token, load_model
from agentctx.spec.engines.sampling import Decoding, generate, rows_at_once
from agentctx.spec.protocols import ChatFrame, EngineCaps, ModelInfo, SampleParams


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
    def caps(self) -> EngineCaps:
        return embedded_caps(self.info)

    def prefill(self, prompt: SparsePrompt, *, chunk: int = 512) -> OpenVinoSession:
        check_sparse(self.info, prompt)
        started = time.perf_counter()
        run = self.model.run()
        logits = run.prefill(prompt.ids, prompt.positions, chunk)
        state = run.state()
        return OpenVinoSession(self, prompt.total, state, readonly(logits), time.perf_counter() - started)


@dataclass(frozen=True, slots=True, eq=False)
class OpenVinoSession:
    """Implements `protocols.Session`. Everything runs in new requests that start with a copy of the state."""

    engine: OpenVinoEngine
    total: int
    state: State
    logits: Float32
    prefill_seconds: float
    n_cached: int | None = 0  # it has no prefix cache

    def extend(self, ids: Sequence[int]) -> Float32:
        if not ids:
            return np.zeros((0, len(self.logits)), np.float32)
        positions = np.arange(self.total, self.total + len(ids))
        logits: Float32 = self.engine.model.run(self.state).forward([ids], positions, last=len(ids))[0]
        return logits

    def sample(self, n: int, params: SampleParams) -> list[Completion]:
        engine, room = self.engine, room_to_decode(self.engine.info, self.total)
        n_tokens = self.state.length + min(params.max_new, room)
        per_token = bytes_per_token(tuple(self.state.arrays.values()), self.state.length)
        decoding = Decoding(
            open_rows=lambda rows, _: _Rows(engine.model.run(self.state, rows), self.total),
            decode=engine.tokenizer.decode,
            eos=engine.eos,
            room=room,
            batch=rows_at_once(per_token, n_tokens),
        )
        return generate(self.logits, n, params, decoding)


@dataclass(slots=True)
class _Rows:
    run: Run
    position: int

    def step(self, tokens: Sequence[int]) -> Float32:
        logits = self.run.forward([[token] for token in tokens], [self.position])
        self.position += 1
        last: Float32 = logits[:, -1]
        return last

    def keep(self, rows: Sequence[int]) -> None:
        self.run.beams = [self.run.beams[row] for row in rows]


def load_engine(folder: Path, name: str, *, tokenizer: Tokenizer, chat: ChatFrame, info: ModelInfo) -> OpenVinoEngine:
    """An engine on the export of the model in `folder`. Raises ModelUnavailable, NotEnoughMemory, EngineUnavailable."""
    started = time.perf_counter()
    model = load_model(folder, name)
    eos = eos_ids(folder, read_config(folder), tokenizer)
    return OpenVinoEngine(info, tokenizer, chat, time.perf_counter() - started, model, eos)
