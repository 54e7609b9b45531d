"""Rows of attention, reduced over groups of queries while they are made: the numpy form, the tests' oracle. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from agentctx.prompt import Float32, Int32
from agentctx.spec.reading import Group, Reduce, Sink
from agentctx.spec.score import attention_rows

BLOCK = 64  # queries at once


def members(group: Group, start: int, first: int, n: int) -> Iterator[tuple[Int32, Float32]]:
    """(places among `n` tokens that begin at `first` in the cache, weights) of a group's queries, in blocks."""
    at = group.tokens + start - first
    low, high = np.searchsorted(at, [0, n])
    weights = np.ones(len(at), np.float32) if group.weights is None else group.weights
    for begin in range(int(low), int(high), BLOCK):
        end = min(begin + BLOCK, int(high))
        yield at[begin:end], weights[begin:end]


@dataclass(slots=True)
class NumpyWatch:
    """Implements `drive.Watch`. Queries attend to the keys before them and themselves, over all of which the softmax
    goes; in a look-ahead step (a query behind `n_tokens`, without an aside) over the prompt's keys only."""

    groups: tuple[Group, ...]
    start: int
    n_tokens: int
    found: dict[tuple[str, int], Float32] = field(default_factory=dict)

    def see(self, layer: int, q: Float32, keys: Float32, scale: float) -> None:
        """q: (H, n, D) of the last n tokens of `keys`: (KVH, S, D), after RoPE."""
        n_heads, n, _ = q.shape
        n_seen = keys.shape[1]
        for group in self.groups:
            for places, weights in members(group, self.start, n_seen - n, n):
                seen = keys if self.start else keys[:, : self.n_tokens]
                rows = attention_rows(q[:, places], seen, scale, places + n_seen - n, raw=group.raw)
                rows = rows[:, :, : self.start or self.n_tokens]
                total = self.found.setdefault((group.name, layer), np.zeros((n_heads, self.n_tokens), np.float32))
                part = total[:, : rows.shape[2]]
                weighted = rows * weights[None, :, None]
                if group.reduce is Reduce.MEAN:
                    part += weighted.sum(axis=1) / np.float32(len(group.tokens))
                else:
                    np.maximum(part, weighted.max(axis=1), out=part)

    def emit(self, sink: Sink) -> None:
        for group in self.groups:
            layers = sorted(layer for name, layer in self.found if name == group.name)
            for layer in layers:
                sink.rows(group.name, layer, self.found[group.name, layer])
