"""Reading attention out of transformers: an attention function that shows (query, key) to whoever watches.

transformers calls an attention function by the name in the model's configuration, with queries and keys after RoPE
and the keys from the cache. Ours is plain SDPA (but for soft caps and sinks, which SDPA can't do) plus a look at the
current watcher. The watcher lives in a context variable: no model is ever changed, so nothing has to be restored after
an error, and drafters in several threads do not see each other's attention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from agentctx.prompt import Int32
from agentctx.spec.engines.torch_layers import LayerKind, capped, explicit_attention, shares, unseen
from agentctx.spec.reading import Group, Reduce, Sink
from agentctx.spec.rows import members

ATTENTION = "agentctx_capture"
# (layer, queries (H, n, D), keys of everything seen so far (KVH, S, D), scale), queries and keys after RoPE
Watcher = Callable[[int, Any, Any, float], None]

After = Callable[[int, Any], None]  # (depth, states (n, D) of the only sequence)

_watcher: ContextVar[Watcher | None] = ContextVar("agentctx_attention_watcher", default=None)
_after: ContextVar[After | None] = ContextVar("agentctx_states_watcher", default=None)


def attention(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    scaling: float | None = None,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[Any, Any]:
    """Attention; shows the queries of the (only) sequence to the watcher, if there is one."""
    watcher = _watcher.get()
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if watcher is not None:
        watcher(module.layer_idx, query[0], key[0], scale)
    softcap, sinks = kwargs.pop("softcap", None), kwargs.pop("s_aux", None)
    if softcap is not None or sinks is not None:
        return explicit_attention(query, key, value, attention_mask, scale, softcap=softcap, sinks=sinks), None
    out: tuple[Any, Any] = sdpa_attention_forward(
        module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
    )
    return out


def register() -> None:
    """Make ATTENTION known to transformers. Without its own mask function, causal masks would be left out."""
    AttentionInterface.register(ATTENTION, attention)
    AttentionMaskInterface.register(ATTENTION, sdpa_mask)


class Tap(torch.nn.Module):  # type: ignore[misc]
    """A layer that shows its output to the current watcher. It stands in the list of a shell around a model, never in
    the model itself."""

    def __init__(self, layer: Any, depth: int) -> None:
        super().__init__()
        self.layer = layer
        self.depth = depth

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        out = self.layer(*args, **kwargs)
        after = _after.get()
        if after is not None:
            after(self.depth, (out[0] if isinstance(out, tuple) else out)[0])
        return out

    def __getattr__(self, name: str) -> Any:
        """What models ask their layers for, such as the kind of attention."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("layer"), name)


@contextmanager
def watching(watcher: Watcher, after: After | None = None) -> Iterator[None]:
    """Show the attention of every forward in this block (and this thread) to `watcher`, and states to `after`."""
    tokens = (_watcher.set(watcher), _after.set(after))
    try:
        yield
    finally:
        _watcher.reset(tokens[0])
        _after.reset(tokens[1])


class DeepEnough(Exception):
    """Raised by a watcher where nothing behind this layer's attention is needed: keys and values are stored by then."""


@dataclass(slots=True)
class TorchWatch:
    """`rows.NumpyWatch` where the tensors are, so that a GPU need not ship its keys; for layers of any kind.

    `room`: tokens that the drafter holds at most. Where a layer's window is shorter it can't see the beginning of the
    prompt: whatever it attends to, it votes for the end. Its rows are 0, but for groups that are `local`.
    """

    groups: tuple[Group, ...]
    start: int
    n_tokens: int
    kinds: tuple[LayerKind, ...]
    room: int
    found: dict[str, Any] = field(default_factory=dict)  # float32 (L, H, T)

    def see(self, layer: int, q: Any, keys: Any, scale: float) -> None:
        n_heads, n, _ = q.shape
        first = keys.shape[1] - n
        kind = self.kinds[layer]
        for group in self.groups:
            for places, weights in members(group, self.start, first, n):
                if group.name not in self.found:
                    shape = (len(self.kinds), n_heads, self.n_tokens)
                    self.found[group.name] = torch.zeros(shape, dtype=torch.float32, device=q.device)
                if not (group.local or kind.sees_all(self.room)):
                    break
                asking = q[:, torch.as_tensor(places, device=q.device)]
                rows = self._rows(asking, keys, scale, places + first, kind, raw=group.raw)
                part = self.found[group.name][layer, :, : rows.shape[2]]
                weighted = torch.as_tensor(weights, device=q.device)
                if group.reduce is Reduce.MEAN:
                    part += torch.einsum("hbs,b->hs", rows, weighted / len(group.tokens))
                else:
                    torch.maximum(part, (rows * weighted[None, :, None]).amax(dim=1), out=part)

    def _rows(self, q: Any, keys: Any, scale: float, at: Int32, kind: LayerKind, *, raw: bool) -> Any:
        """(H, b, min(S, T)): attention of the queries at places `at` of the cache."""
        if self.start == 0:
            keys = keys[:, : self.n_tokens]
        n_heads, block, width = q.shape
        n_kv, n_seen, _ = keys.shape
        logits = q.float().reshape(n_kv, -1, width) @ keys.float().transpose(1, 2)
        logits = capped(logits.reshape(n_heads, block, n_seen).mul_(scale), kind.softcap)
        # In a drafter, nothing is dropped: places in the cache are positions.
        places = torch.arange(n_seen, device=q.device)
        hidden = unseen(torch.as_tensor(at, device=q.device), places, kind.window)[None]
        logits.masked_fill_(hidden, 0.0 if raw else float("-inf"))
        rows = logits if raw else shares(logits, kind.sinks)
        if kind.window is not None:  # a look-ahead query may see nothing of the prompt any more
            rows.masked_fill_(hidden, 0.0)
        return rows[:, :, : self.start or None]

    def emit(self, sink: Sink) -> None:
        for group in self.groups:
            if group.name in self.found:
                for layer, rows in enumerate(self.found[group.name].cpu().numpy()):
                    sink.rows(group.name, layer, rows)
