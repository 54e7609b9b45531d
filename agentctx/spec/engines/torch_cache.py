"""A key-value cache of fixed capacity for transformers, which can be copied for decoding.

transformers' own dynamic cache concatenates: each decoded token copies the whole prompt's keys and values, once per
layer and sample. Here a token is written into room that was reserved. The cache remembers the tokens' original
positions, which the windows of sliding layers count.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from transformers.cache_utils import Cache, DynamicLayer


class RoomyLayer(DynamicLayer):  # type: ignore[misc]
    """Keys and values of one layer, (rows, heads, up to `capacity`, D). `keys` and `values` show the used part."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity
        self.used = 0
        self.store: tuple[Any, Any] | None = None

    def update(self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        if self.store is None:
            self.lazy_initialization(key_states, value_states)
            self.store = (self._room(key_states), self._room(value_states))
        end = self.used + key_states.shape[-2]
        if end > self.capacity:
            raise ValueError(f"{end} tokens don't fit into a cache for {self.capacity}")
        for room, new in zip(self.store, (key_states, value_states), strict=True):
            room[:, :, self.used : end] = new
        self.used = end
        self.keys, self.values = (room[:, :, :end] for room in self.store)
        return self.keys, self.values

    def get_seq_length(self, *args: Any) -> int:
        return self.used

    def truncate(self, used: int) -> None:
        """Forget what lies behind the first `used` tokens."""
        if self.store is not None and used < self.used:
            self.used = used
            self.keys, self.values = (room[:, :, :used] for room in self.store)

    def fork(self, rows: int, extra: int) -> RoomyLayer:
        """`rows` copies of the (only) row, with room for `extra` more tokens."""
        other = RoomyLayer(self.used + extra)
        other.update(self.keys.expand(rows, -1, -1, -1), self.values.expand(rows, -1, -1, -1))
        return other

    def select(self, rows: Any) -> None:
        if self.store is not None:
            self.store = (self.store[0][rows], self.store[1][rows])
            self.keys, self.values = (room[:, :, : self.used] for room in self.store)

    def _room(self, states: Any) -> Any:
        rows, heads, _, width = states.shape
        return torch.empty((rows, heads, self.capacity, width), dtype=states.dtype, device=states.device)


class RoomyCache(Cache):  # type: ignore[misc]
    """Layers, and where their tokens lie: the same in all rows. What lies behind the used part of `positions`, int64
    (capacity,), means nothing."""

    def __init__(self, layers: list[RoomyLayer], positions: Any) -> None:
        super().__init__(layers=layers)
        self.positions = positions

    def place(self, positions: Any) -> Any:
        """Remember where the tokens lie that come next; the positions of all tokens then, int64 (S,)."""
        used = self.get_seq_length()
        end = used + len(positions)
        if end > len(self.positions):
            raise ValueError(f"{end} tokens don't fit into a cache for {len(self.positions)}")
        self.positions[used:end] = positions
        return self.positions[:end]


def new_cache(n_layers: int, capacity: int) -> Any:
    return RoomyCache([RoomyLayer(capacity) for _ in range(n_layers)], np.zeros(capacity, np.int64))


def fork(cache: Any, rows: int, extra: int) -> Any:
    positions = np.concatenate([cache.positions[: cache.get_seq_length()], np.zeros(extra, np.int64)])
    return RoomyCache([layer.fork(rows, extra) for layer in cache.layers], positions)


def truncate(cache: Any, used: int) -> None:
    for layer in cache.layers:
        layer.truncate(used)


def select(cache: Any, rows: list[int]) -> None:
    for layer in cache.layers:
        layer.select(torch.as_tensor(rows, device=layer.keys.device))
