"""Implements `drive.Runner` on a model of mlx-lm."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from agentctx.prompt import Float32, Int32
from agentctx.spec.drive import Watch
from agentctx.spec.engines.mlx_cache import SeatedCache
from agentctx.spec.engines.mlx_capture import MlxWatch
from agentctx.spec.engines.mlx_model import MlxModel
from agentctx.spec.prefix import KnownPrefix
from agentctx.spec.reading import Group


class MlxRunner:
    """A shell of its own around the model's layers, and a cache of `capacity` tokens.

    mlx computes only what is asked for: without logits and states, nothing behind the last layer's keys and values.
    """

    def __init__(self, model: MlxModel, capacity: int) -> None:
        self.model = model.tapped(self._see, self._after)
        self.cache: list[SeatedCache] = model.new_cache(capacity)
        self._watches: tuple[Watch, ...] = ()
        self._found: dict[int, list[Any]] = {}

    @property
    def n_layers(self) -> int:
        return self.model.n_layers

    @property
    def length(self) -> int:
        return self.cache[0].used

    def watch(self, groups: tuple[Group, ...], start: int, n_tokens: int) -> MlxWatch:
        return MlxWatch(groups, start, n_tokens)

    def advance(
        self, ids: Int32, watch: Watch, *, chunk: int, stop: bool, hidden: tuple[int, ...]
    ) -> dict[int, Float32]:
        self._watches, self._found = (watch,), {depth: [] for depth in hidden}
        for start in range(0, len(ids), chunk):
            self.model.advance(ids[start : start + chunk], self.length, self.cache)
            self.model.settle([own[-1] for own in self._found.values()])
        return {depth: np.array(mx.concatenate(own)) for depth, own in self._found.items()}

    def step(self, token: int, watches: tuple[Watch, ...]) -> int:
        self._watches, self._found = watches, {}
        logits = self.model.forward([[token]], self.length, self.cache)
        return int(np.argmax(logits[0, -1]))

    def load(self, prefix: KnownPrefix) -> None:
        dtype = self.model.dtype
        for layer, keys, values in zip(self.cache, prefix.keys, prefix.values, strict=True):
            layer.update_and_fetch(*(mx.array(one).astype(dtype)[None] for one in (keys, values)))
            self.model.settle(layer.arrays)

    def known(self, ids: Int32, states: dict[int, Float32]) -> KnownPrefix:
        n = len(ids)
        both = [[np.array(one[0, :, :n].astype(mx.float32)) for one in layer.seen()] for layer in self.cache]
        return KnownPrefix(ids, tuple(keys for keys, _ in both), tuple(values for _, values in both), states)

    def rewind(self, length: int) -> None:
        for layer in self.cache:
            layer.rewind(length)

    def _see(self, layer: int, q: Any, scale: float) -> None:
        keys = self.cache[layer].seen()[0][0]
        for watch in self._watches:
            watch.see(layer, q, keys, scale)

    def _after(self, depth: int, states: Any) -> None:
        if depth in self._found:
            self._found[depth].append(self.model.normed(states).astype(mx.float32))
