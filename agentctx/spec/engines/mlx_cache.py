"""A key-value cache for mlx-lm that holds kept tokens one after the other and reports their original positions.

mlx-lm's models ask their cache for three things: `offset` (where the rotary embedding begins), `update_and_fetch` and
a mask. Its own cache takes the number of stored tokens for the offset. Here the two are apart: no model has to be
patched, and what a session changes is its own.
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx


class SeatedCache:
    """Keys and values of one layer, (rows, KVH, up to `capacity`, D).

    `used`: tokens that it holds. `offset`: the position of the next one. Room is reserved once; writing into it copies
    nothing, as no other array refers to it.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.used = 0
        self.offset = 0
        self.rooms: tuple[Any, Any] | None = None

    def update_and_fetch(self, keys: Any, values: Any) -> tuple[Any, Any]:
        """Store n new tokens; keys and values of everything that is stored."""
        end = self.used + keys.shape[2]
        if end > self.capacity:
            raise ValueError(f"{end} tokens don't fit into a cache for {self.capacity}")
        if self.rooms is None:
            self.rooms = (self._room(keys), self._room(values))
        for room, new in zip(self.rooms, (keys, values), strict=True):
            room[:, :, self.used : end] = new
        self.offset += end - self.used
        self.used = end
        return self.seen()

    def seen(self) -> tuple[Any, Any]:
        """Keys and values of the stored tokens, (rows, KVH, used, D)."""
        if self.rooms is None:
            raise ValueError("nothing is stored yet")
        keys, values = self.rooms
        return keys[:, :, : self.used], values[:, :, : self.used]

    def make_mask(self, n: int, return_array: bool = False, window_size: int | None = None) -> Any:
        """Causal by the order of the tokens: queries are the last n of what is stored. None for a single one."""
        if window_size is not None:
            raise ValueError("a sliding window would count kept tokens only")
        if n == 1:
            return None
        if not return_array:
            return "causal"
        return mx.arange(self.used, self.used + n)[:, None] >= mx.arange(self.used + n)[None]

    def fork(self, rows: int, extra: int) -> SeatedCache:
        """`rows` copies of the (only) row, with room for `extra` more tokens."""
        other = SeatedCache(self.used + extra)
        other.update_and_fetch(*(mx.broadcast_to(one, (rows, *one.shape[1:])) for one in self.seen()))
        other.offset = self.offset
        return other

    def select(self, rows: list[int]) -> None:
        """Keep these rows only."""
        if self.rooms is not None:
            keys, values = self.rooms
            self.rooms = (keys[mx.array(rows)], values[mx.array(rows)])

    def rewind(self, length: int) -> None:
        """Forget what lies behind the first `length` tokens, whose positions are those of their order."""
        self.used = self.offset = length

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What has to be evaluated before another thread may use it."""
        return self.rooms or ()

    @property
    def bytes_per_token(self) -> int:
        """Of one row."""
        return sum(room.nbytes // (room.shape[0] * self.capacity) for room in self.arrays)

    def _room(self, states: Any) -> Any:
        rows, heads, _, width = states.shape
        return mx.zeros((rows, heads, self.capacity, width), states.dtype)


def new_cache(n_layers: int, capacity: int) -> list[SeatedCache]:
    return [SeatedCache(capacity) for _ in range(n_layers)]


def place(cache: list[SeatedCache], position: int) -> None:
    """The next tokens begin at this original position."""
    for layer in cache:
        layer.offset = position


def arrays(cache: list[SeatedCache]) -> list[Any]:
    return [one for layer in cache for one in layer.arrays]
