"""Logits -> tokens -> completions: the generation loop that every embedded engine shares. Pure numpy.

Sample i of n draws from its own generator (PCG64 seeded `seed + i`), one uniform number per token, so a sample does
not depend on which other samples share its batch, nor on the library that computed the logits, as far as the
logits agree to the last bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from agentctx.prompt import Completion, Float32
from agentctx.spec.engines.spoken import Spoken
from agentctx.spec.protocols import Hear, SampleParams

BATCH_BYTES = 2**30  # keys and values of all samples that decode side by side


class Rows(Protocol):
    """Copies of one prefilled prompt that decode side by side."""

    def step(self, tokens: Sequence[int]) -> Float32:
        """Append one token to every row; float32 (rows, V) for the next one."""

    def keep(self, rows: Sequence[int]) -> None:
        """Drop all other rows."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """What the loop needs to know of an engine."""

    open_rows: Callable[[int, int], Rows]  # (n rows, most tokens that will be appended)
    decode: Callable[[Sequence[int]], str]
    eos: frozenset[int]
    room: int  # tokens that the context still holds
    batch: int  # rows that fit in memory


def rows_at_once(bytes_per_token: int, n_tokens: int) -> int:
    """Samples that decode side by side within BATCH_BYTES: rows of `n_tokens`, prompt and answer. At least one."""
    return max(1, BATCH_BYTES // (bytes_per_token * max(1, n_tokens)))


@dataclass(slots=True)
class _Row:
    rng: np.random.Generator
    ids: list[int] = field(default_factory=list)
    done: Completion | None = None
    spoken: Spoken | None = None


def generate(
    logits: Float32, n: int, params: SampleParams, decoding: Decoding, hear: Hear | None = None
) -> list[Completion]:
    """n completions that continue `logits` (V,), in sample order. Greedy ones are equal and computed once.

    `hear`: see `protocols.Sampler`.
    """
    if n < 1:
        raise ValueError(f"can't draw {n} samples")
    limit = max(0, min(params.max_new, decoding.room))
    if params.temperature <= 0:
        return [_batch(logits, [0], params, decoding, limit, hear)[0]] * n
    out: list[Completion] = []
    for first in range(0, n, decoding.batch):
        out += _batch(logits, list(range(first, min(n, first + decoding.batch))), params, decoding, limit, hear)
    return out


def pick(logits: Float32, params: SampleParams, rng: np.random.Generator) -> int:
    """The next token: the (first) best one at temperature 0, else one draw from the top-p nucleus."""
    if params.temperature <= 0:
        return int(np.argmax(logits))
    weights = np.exp((logits.astype(np.float64) - float(logits.max())) / params.temperature)
    weights /= weights.sum()
    if params.top_p < 1:
        weights = nucleus(weights, params.top_p)
    cumulative = np.cumsum(weights)
    drawn = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
    return min(drawn, int(np.flatnonzero(weights)[-1]))


def nucleus(weights: npt.NDArray[np.float64], top_p: float) -> npt.NDArray[np.float64]:
    """The weights (V,) with all but the smallest set of likeliest tokens that holds `top_p` set to 0."""
    order = np.argsort(-weights, kind="stable")
    n_keep = int(np.searchsorted(np.cumsum(weights[order]), top_p)) + 1
    out = np.zeros_like(weights)
    out[order[:n_keep]] = weights[order[:n_keep]]
    return out


def _batch(
    logits: Float32, samples: list[int], params: SampleParams, decoding: Decoding, limit: int, hear: Hear | None
) -> list[Completion]:
    started = time.perf_counter()
    rows = [
        _Row(np.random.default_rng(params.seed + sample), spoken=Spoken(hear, sample) if hear is not None else None)
        for sample in samples
    ]
    if not limit:
        return [Completion("", (), "length", 0.0) for _ in rows]
    live, batch, current = rows, None, np.broadcast_to(logits, (len(rows), logits.shape[-1]))
    while True:
        for row, scores in zip(live, current, strict=True):
            _append(row, pick(scores, params, row.rng), params, decoding, limit)
            if row.done is not None:
                row.done = replace(row.done, seconds=time.perf_counter() - started)
                if row.spoken is not None:
                    row.spoken.end(row.done.text)
        alive = [i for i, row in enumerate(live) if row.done is None]
        if not alive:
            return [row.done for row in rows if row.done is not None]
        if batch is None:
            batch = decoding.open_rows(len(alive), limit - 1)
        elif len(alive) < len(live):
            batch.keep(alive)
        live = [live[i] for i in alive]
        current = batch.step([row.ids[-1] for row in live])


def _append(row: _Row, token: int, params: SampleParams, decoding: Decoding, limit: int) -> None:
    """Add a token to a row and finish it where it ends. The EOS token itself is not part of a completion."""
    if token in decoding.eos and not params.past_eos:
        row.done = _completion(row, decoding, "stop")
        return
    row.ids.append(token)
    if params.stop or row.spoken is not None:
        text = decoding.decode(row.ids)
        end = stop_end(text, params.stop)
        if end is not None:
            row.done = replace(_completion(row, decoding, "stop"), text=text[:end])
            return
        if row.spoken is not None:
            row.spoken.up_to(text)
    if len(row.ids) >= limit:
        row.done = _completion(row, decoding, "length")


def stop_end(text: str, stop: Collection[str]) -> int | None:
    """Where the first stop string in `text` ends (it stays in the text), None without one."""
    found = [(text.index(word), len(word)) for word in stop if word and word in text]
    if not found:
        return None
    start, length = min(found)
    return start + length


def _completion(row: _Row, decoding: Decoding, finish: str) -> Completion:
    return Completion(decoding.decode(row.ids), tuple(row.ids), finish, 0.0)
