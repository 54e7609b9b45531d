"""A key-value cache of fixed capacity for transformers, which can be copied for decoding.

transformers' own dynamic cache concatenates: each decoded token copies the whole prompt's keys and values, once per
layer and sample. Here a token is written into room that was reserved.
"""

from __future__ import annotations

from typing import Any

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


def new_cache(n_layers: int, capacity: int) -> Any:
    return Cache(layers=[RoomyLayer(capacity) for _ in range(n_layers)])


def fork(cache: Any, rows: int, extra: int) -> Any:
    return Cache(layers=[layer.fork(rows, extra) for layer in cache.layers])


def truncate(cache: Any, used: int) -> None:
    for layer in cache.layers:
        layer.truncate(used)


def select(cache: Any, rows: list[int]) -> None:
    for layer in cache.layers:
        layer.select(torch.as_tensor(rows, device=layer.keys.device))
