"""A prefilled prompt in this process, whatever library holds its keys and values. Everything runs on copies of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from agentctx.prompt import Completion, Float32, Tokenizer
from agentctx.spec.engines.limits import check_room, room_to_decode
from agentctx.spec.engines.sampling import Decoding, generate, rows_at_once
from agentctx.spec.protocols import Hear, ModelInfo, SampleParams


class Branch(Protocol):
    """Copies of a prefilled prompt, side by side, and what was appended to each."""

    def forward(self, ids: Sequence[Sequence[int]], position: int) -> Float32:
        """Append `ids` (rows, n), placed from `position` on; float32 (rows, n, V): logits after each."""

    def keep(self, rows: Sequence[int]) -> None:
        """Drop all other rows."""


class Held(Protocol):
    """Keys and values of a prefilled prompt; never written to."""

    @property
    def n_tokens(self) -> int:
        """Tokens that it holds: those that were kept."""

    @property
    def bytes_per_token(self) -> int:
        """Of one row, in all layers."""

    def branch(self, rows: int, extra: int) -> Branch:
        """`rows` copies, with room for `extra` more tokens."""


class Embedded(Protocol):
    """What a session asks of its engine."""

    @property
    def info(self) -> ModelInfo: ...

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def eos(self) -> frozenset[int]: ...


@dataclass(frozen=True, slots=True, eq=False)
class HeldSession:
    """Implements `protocols.Session`.

    `total`: original length of the prompt. `reach`: positions beyond which what is held would no longer be right.
    """

    engine: Embedded
    total: int
    held: Held
    logits: Float32
    prefill_seconds: float
    reach: int | None = None
    n_cached: int | None = 0  # there is no prefix cache

    @property
    def room(self) -> int:
        """Tokens that can be generated."""
        room = room_to_decode(self.engine.info, self.total)
        return room if self.reach is None else min(room, self.reach - self.total + 1)

    def extend(self, ids: Sequence[int]) -> Float32:
        """Raises EngineUnavailable: they don't fit behind the prompt."""
        if not ids:
            return np.zeros((0, len(self.logits)), np.float32)
        check_room(self.engine.info, self.total, len(ids), self.room)
        found: Float32 = self.held.branch(1, len(ids)).forward([ids], self.total)[0]
        return found

    def sample(self, n: int, params: SampleParams, hear: Hear | None = None) -> list[Completion]:
        n_tokens = self.held.n_tokens + min(params.max_new, self.room)
        decoding = Decoding(
            open_rows=lambda rows, extra: _Rows(self.held.branch(rows, extra), self.total),
            decode=self.engine.tokenizer.decode,
            eos=self.engine.eos,
            room=self.room,
            batch=rows_at_once(self.held.bytes_per_token, n_tokens),
        )
        return generate(self.logits, n, params, decoding, hear)


@dataclass(slots=True)
class _Rows:
    """Implements `sampling.Rows`."""

    branch: Branch
    position: int

    def step(self, tokens: Sequence[int]) -> Float32:
        logits = self.branch.forward([[token] for token in tokens], self.position)
        self.position += 1
        last: Float32 = logits[:, -1]
        return last

    def keep(self, rows: Sequence[int]) -> None:
        self.branch.keep(rows)
