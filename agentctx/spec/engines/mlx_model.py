"""A causal language model of mlx-lm: running it, and cutting it after the first layers.

A loaded model is never changed. `first_layers` and `tapped` make a second shell around the same weights instead.
mlx computes lazily and keeps one stream per thread: what another thread, or a later call, may use is evaluated before a
method returns.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import mlx.core as mx
import numpy as np

from agentctx.errors import EngineUnavailable, NotEnoughMemory
from agentctx.prompt import Float32, SparsePrompt
from agentctx.spec.engines import mlx_cache
from agentctx.spec.engines.mlx_cache import SeatedCache
from agentctx.spec.engines.mlx_capture import After, See, Tap
from agentctx.spec.engines.mlx_library import get_total_parameters
from agentctx.spec.engines.modules import form_of


@dataclass(frozen=True, slots=True, eq=False)
class MlxModel:
    """A model (or its first layers) and how to call it. Positions are those of the first id; the others follow it."""

    name: str
    module: Any  # the Model of an architecture's module in mlx_lm.models
    n_layers: int
    n_params: int
    dtype: Any  # of activations, keys and values

    def new_cache(self, capacity: int) -> list[SeatedCache]:
        return mlx_cache.new_cache(self.n_layers, capacity)

    @property
    def form(self) -> str:
        return form_of(str(self.dtype).removeprefix("mlx.core."), mx.default_device().type.name)

    def fork(self, cache: list[SeatedCache], rows: int, extra: int) -> list[SeatedCache]:
        """`rows` copies of a cache of one row, each with room for `extra` more tokens."""
        copies = [layer.fork(rows, extra) for layer in cache]
        self.settle(mlx_cache.arrays(copies))
        return copies

    def forward(self, ids: Sequence[Sequence[int]], position: int, cache: list[SeatedCache]) -> Float32:
        """float32 (rows, n, V): logits after each of the ids (rows, n). Mutates `cache`."""
        with mapped(self.name):
            mlx_cache.place(cache, position)
            logits = self.module(mx.array(np.asarray(ids, np.int32)), cache=cache).astype(mx.float32)
            mx.eval(logits, mlx_cache.arrays(cache))
            found: Float32 = np.array(logits)
            return found

    def advance(self, ids: Any, position: int, cache: list[SeatedCache]) -> None:
        """Run `ids` (n,) as far as keys and values need. Mutates `cache`."""
        with mapped(self.name):
            mlx_cache.place(cache, position)
            self.module.model(mx.array(np.asarray(ids, np.int32))[None], cache=cache)
            mx.eval(mlx_cache.arrays(cache))

    def prefill(self, prompt: SparsePrompt, cache: list[SeatedCache], chunk: int) -> Float32:
        """float32 (V,): logits after the last token. Mutates `cache`.

        One forward for each run of neighbours, as a forward's tokens get consecutive positions; and one for the last
        token, whose logits alone are computed.
        """
        last = len(prompt.ids) - 1
        for start, end, position in prompt.runs():
            for first in range(start, min(end, last), chunk):
                part = prompt.ids[first : min(first + chunk, end, last)]
                self.advance(part, position + first - start, cache)
        logits: Float32 = self.forward([[int(prompt.ids[last])]], int(prompt.positions[last]), cache)[0, -1]
        return logits

    def settle(self, arrays: Any) -> None:
        """Evaluate them."""
        with mapped(self.name):
            mx.eval(arrays)

    def normed(self, states: Any) -> Any:
        """States of any layer under the final norm."""
        return self.module.model.norm(states)

    def first_layers(self, n_layers: int) -> MlxModel:
        """The first `n_layers` layers, the final norm and the head, on the same weights."""
        module = _with_layers(self.module, list(self.module.layers)[:n_layers])
        return replace(self, module=module, n_layers=n_layers, n_params=get_total_parameters(module))

    def tapped(self, see: See, after: After) -> MlxModel:
        """A shell on the same weights that shows queries and states while it runs."""
        layers = [Tap(layer, index, see, after) for index, layer in enumerate(self.module.layers)]
        return replace(self, module=_with_layers(self.module, layers))


def _with_layers(module: Any, layers: list[Any]) -> Any:
    """A shallow copy of a model with other layers."""
    shell, inner = copy.copy(module), copy.copy(module.model)
    inner.layers = layers
    shell.model = inner
    return shell


@contextmanager
def mapped(name: str) -> Iterator[None]:
    """Exceptions of mlx while it runs a model as ours."""
    try:
        yield
    except (RuntimeError, ValueError, IndexError, MemoryError) as error:
        if out_of_memory(error):
            raise NotEnoughMemory(f"{name} does not fit into memory: {error}", hint="choose a smaller model") from error
        raise EngineUnavailable(f"mlx failed while running {name}: {error}") from error


def out_of_memory(error: Exception) -> bool:
    """mlx has no exception of its own for it: allocators say 'allocate', Metal says 'Insufficient Memory'."""
    said = str(error)
    return isinstance(error, MemoryError) or any(word in said for word in ("allocate", "bad_alloc", "Insufficient Mem"))
