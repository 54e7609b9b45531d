"""Reading attention out of mlx-lm: layers in a shell, whose rotary module shows queries after RoPE.

Every attention module of the supported models calls its `rope` twice in a forward, with the queries and then with the
keys. A copy of the module (the same weights) gets a `rope` that remembers what it gave; the model and its classes stay
as they are. A shell belongs to one reading: drafters in several threads share weights, and nothing else.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import mlx.core as mx
import numpy as np

from agentctx.errors import EngineUnavailable
from agentctx.prompt import Float32, Int32
from agentctx.spec.reading import Group, Reduce, Sink
from agentctx.spec.rows import members

See = Callable[[int, Any, float], None]  # (layer, queries (H, n, D) after RoPE, scale); keys are in the cache by then
After = Callable[[int, Any], None]  # (depth, states (n, hidden))


class Recorder:
    """Stands for an attention's `rope` and remembers what that made, in order."""

    def __init__(self, rope: Any) -> None:
        self._rope = rope
        self._made: list[Any] = []

    def __call__(self, x: Any, offset: Any = 0) -> Any:
        out = self._rope(x, offset=offset)
        self._made.append(out)
        return out

    def queries(self) -> Any:
        """Of the forward that has just been; (rows, H, n, D)."""
        made, self._made = self._made, []
        if len(made) != 2:
            raise EngineUnavailable(f"an attention layer used its rotary embedding {len(made)} times instead of twice")
        return made[0]


class Tap:
    """A layer on the weights of another one, which shows its queries and its states. It stands in the list of a shell
    around a model."""

    def __init__(self, layer: Any, index: int, see: See, after: After | None) -> None:
        self._layer = copy.copy(layer)
        self._layer.self_attn = copy.copy(layer.self_attn)
        self._recorder = Recorder(layer.self_attn.rope)
        self._layer.self_attn.rope = self._recorder
        self._scale = float(layer.self_attn.scale)
        self._index, self._see, self._after = index, see, after

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        out = self._layer(*args, **kwargs)
        self._see(self._index, self._recorder.queries()[0], self._scale)
        if self._after is not None:
            self._after(self._index + 1, out[0])
        return out

    def __getattr__(self, name: str) -> Any:
        """What models ask their layers for, such as the kind of attention."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._layer, name)


@dataclass(slots=True)
class MlxWatch:
    """`rows.NumpyWatch` in arrays of mlx. Rows are evaluated as they come, so that one layer's at most are pending."""

    groups: tuple[Group, ...]
    start: int
    n_tokens: int
    found: dict[tuple[str, int], Any] = field(default_factory=dict)  # float32 (H, T)

    def see(self, layer: int, q: Any, keys: Any, scale: float) -> None:
        n_heads, n, _ = q.shape
        first = keys.shape[1] - n
        for group in self.groups:
            for places, weights in members(group, self.start, first, n):
                rows = self._rows(q[:, mx.array(places)], keys, scale, places + first, raw=group.raw)
                weighted = rows * mx.array(weights)[None, :, None]
                total = self.found.get((group.name, layer))
                if total is None:
                    total = mx.zeros((n_heads, self.n_tokens))
                part = total[:, : rows.shape[2]]
                if group.reduce is Reduce.MEAN:
                    part = part + weighted.sum(axis=1) / len(group.tokens)
                else:
                    part = mx.maximum(part, weighted.max(axis=1))
                total = mx.concatenate([part, total[:, rows.shape[2] :]], axis=1)
                mx.eval(total)
                self.found[group.name, layer] = total

    def _rows(self, q: Any, keys: Any, scale: float, at: Int32, *, raw: bool) -> Any:
        """(H, b, min(S, T)): attention of the queries at places `at` of the cache."""
        if self.start == 0:
            keys = keys[:, : self.n_tokens]
        n_heads, block, width = q.shape
        n_kv, n_seen, _ = keys.shape
        grouped = q.astype(mx.float32).reshape(n_kv, -1, width)
        logits = (grouped @ keys.astype(mx.float32).swapaxes(1, 2)).reshape(n_heads, block, n_seen) * scale
        future = mx.arange(n_seen)[None] > mx.array(at)[:, None]
        logits = mx.where(future[None], 0.0 if raw else -mx.inf, logits)
        return (logits if raw else mx.softmax(logits, axis=-1))[:, :, : self.start or None]

    def emit(self, sink: Sink) -> None:
        for group in self.groups:
            for layer in sorted(layer for name, layer in self.found if name == group.name):
                rows: Float32 = np.array(self.found[group.name, layer])
                sink.rows(group.name, layer, rows)
