"""Reading attention out of transformers: an attention function that shows (query, key) to whoever watches.

transformers calls an attention function by the name in the model's configuration, with queries and keys after RoPE
and the keys from the cache. Ours is plain SDPA plus a look at the current watcher. The watcher lives in a context
variable: no model is ever changed, so nothing has to be restored after an error, and drafters in several threads
do not see each other's attention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from agentctx.prompt import Float32

ATTENTION = "agentctx_capture"
Watcher = Callable[[Any, Any, float], None]  # query (H, D), keys (KVH, S, D), scale

_watcher: ContextVar[Watcher | None] = ContextVar("agentctx_attention_watcher", default=None)


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
    """SDPA; shows the last query row of the (only) sequence to the watcher, if there is one."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(query[0, :, -1], key[0], query.shape[-1] ** -0.5 if scaling is None else scaling)
    out: tuple[Any, Any] = sdpa_attention_forward(
        module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
    )
    return out


def register() -> None:
    """Make ATTENTION known to transformers. Without its own mask function, causal masks would be left out."""
    AttentionInterface.register(ATTENTION, attention)
    AttentionMaskInterface.register(ATTENTION, sdpa_mask)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Show the attention of every forward in this block (and this thread) to `watcher`."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def attention_rows(query: Any, keys: Any, scale: float) -> Float32:
    """`score.attention_rows` where the tensors are, so that a GPU need not ship its keys: float32 (H, T)."""
    n_kv, _, width = keys.shape
    grouped = query.float().reshape(n_kv, -1, width)
    rows = torch.softmax(grouped @ keys.float().transpose(1, 2) * scale, dim=-1)
    out: Float32 = rows.reshape(query.shape[0], -1).cpu().numpy()
    return out
