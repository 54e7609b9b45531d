"""Implements `drive.Runner` on a torch model."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from agentctx.prompt import Float32, Int32
from agentctx.spec.drive import Watch
from agentctx.spec.engines import torch_cache
from agentctx.spec.engines.torch_capture import DeepEnough, TorchWatch, watching
from agentctx.spec.engines.torch_model import TorchModel
from agentctx.spec.prefix import KnownPrefix
from agentctx.spec.reading import Group


class TorchRunner:
    """The model's layers with a cache of `capacity` tokens."""

    def __init__(self, model: TorchModel, capacity: int) -> None:
        self.model = model
        self.capacity = capacity
        self.cache = model.new_cache(capacity)

    @property
    def n_layers(self) -> int:
        return self.model.n_layers

    @property
    def length(self) -> int:
        return int(self.cache.get_seq_length())

    def watch(self, groups: tuple[Group, ...], start: int, n_tokens: int) -> TorchWatch:
        return TorchWatch(groups, start, n_tokens, self.model.kinds, self.capacity)

    def advance(
        self, ids: Int32, watch: Watch, *, chunk: int, stop: bool, hidden: tuple[int, ...]
    ) -> dict[int, Float32]:
        found: dict[int, list[Float32]] = {depth: [] for depth in hidden}
        last = self.model.n_layers - 1

        def see(layer: int, q: Any, keys: Any, scale: float) -> None:
            watch.see(layer, q, keys, scale)
            if stop and layer == last and last + 1 not in found:
                raise DeepEnough

        def after(depth: int, states: Any) -> None:
            if depth in found:
                found[depth].append(self.model.normed(states).float().cpu().numpy())

        size = self.model.forward_size(len(ids), chunk)
        for start in range(0, len(ids), size):
            part = ids[start : start + size]
            at = self.length
            with watching(see, after if hidden else None):
                self.model.advance(part, np.arange(at, at + len(part)), self.cache)
        return {depth: np.concatenate(own) for depth, own in found.items()}

    def step(self, token: int, watches: tuple[Watch, ...]) -> int:
        def see(layer: int, q: Any, keys: Any, scale: float) -> None:
            for watch in watches:
                watch.see(layer, q, keys, scale)

        with watching(see):
            logits = self.model.forward([[token]], [[self.length]], self.cache)
        return int(np.argmax(logits[0, -1]))

    def load(self, prefix: KnownPrefix) -> None:
        self.cache.place(np.arange(len(prefix.ids)))
        device, dtype = self.model.module.device, self.model.module.dtype
        for layer, keys, values in zip(self.cache.layers, prefix.keys, prefix.values, strict=True):
            layer.update(*(torch.as_tensor(one, device=device, dtype=dtype)[None] for one in (keys, values)))

    def known(self, ids: Int32, states: dict[int, Float32]) -> KnownPrefix:
        n = len(ids)
        keys, values = (
            tuple(getattr(layer, name)[0, :, :n].float().cpu().numpy().copy() for layer in self.cache.layers)
            for name in ("keys", "values")
        )
        return KnownPrefix(ids, keys, values, states)

    def rewind(self, length: int) -> None:
        torch_cache.truncate(self.cache, length)
