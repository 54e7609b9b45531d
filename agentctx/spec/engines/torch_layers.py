"""What the layers of a model of transformers attend to, and the masks for it.

Windows count original positions. transformers' own masks count places in the cache, where the dropped tokens between
two kept ones are missing. So layers with windows get explicit masks, made of the positions that the cache remembers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from agentctx.errors import EngineUnavailable
from agentctx.spec.engines.folder import FULL_ATTENTION, SLIDING_ATTENTION
from agentctx.spec.reading import Reading

# Their layers take turns by `layer_types`, and they take a mask for each type; of the others all layers slide, or none.
MASKS_BY_TYPE = frozenset({"gemma2", "gemma3_text", "gpt_oss", "ministral", "qwen2", "qwen3", "smollm3"})
SOFTCAPPED = frozenset({"gemma2"})  # gemma3_text has the option too, but transformers leaves it out there


@dataclass(frozen=True, slots=True, eq=False)
class LayerKind:
    """How a layer attends to what lies before a token.

    `window`: positions that are seen, the token's own included; None = all. `softcap`: logits are squeezed between
    plus and minus this. `sinks`: (H,), one more logit of each head in the softmax, which stands for no token.
    """

    window: int | None = None
    softcap: float | None = None
    sinks: Any = None

    def sees_all(self, n_positions: int) -> bool:
        """Whether the last of so many positions sees the first."""
        return self.window is None or n_positions <= self.window


def layer_kinds(module: Any, name: str) -> tuple[LayerKind, ...]:
    """Of each layer of a causal language model. Raises EngineUnavailable where transformers ignores its types."""
    config = module.config
    window = getattr(config, "sliding_window", None)
    softcap = getattr(config, "attn_logit_softcapping", None) if config.model_type in SOFTCAPPED else None
    types = _types(config, name, window)
    return tuple(
        LayerKind(
            window if of == SLIDING_ATTENTION else None,
            softcap,
            getattr(layer.self_attn, "sinks", None),
        )
        for layer, of in zip(module.model.layers, types, strict=True)
    )


def _types(config: Any, name: str, window: int | None) -> Sequence[str]:
    own: list[str] = list(getattr(config, "layer_types", None) or ())
    if config.model_type in MASKS_BY_TYPE:
        return own[: config.num_hidden_layers]
    if SLIDING_ATTENTION in own:
        raise EngineUnavailable(
            f"{name} can't be prefilled sparsely here: only some of its layers slide, "
            f"transformers slides all of a {config.model_type} model"
        )
    return [FULL_ATTENTION if window is None else SLIDING_ATTENTION] * config.num_hidden_layers


def check_sight(name: str, kinds: Sequence[LayerKind], reading: Reading, room: int) -> None:
    """Raises EngineUnavailable where attention is read and no layer of a drafter sees all of its `room` tokens."""
    aside = reading.aside.groups if reading.aside is not None else ()
    asks = reading.n_lookahead or any(not group.local for group in (*reading.groups, *aside))
    if asks and not any(kind.sees_all(room) for kind in kinds):
        raise EngineUnavailable(
            f"the first {len(kinds)} layers of {name} slide over fewer tokens than the {room} to be read: "
            "they would vote for the prompt's end",
            hint="run more layers, or choose a drafter without sliding windows",
        )


def attention_masks(kinds: Sequence[LayerKind], positions: Any, n: int, *, by_type: bool) -> dict[str, Any]:
    """The argument `attention_mask` of a forward over the last `n` of the tokens at `positions`, int64 (S,).

    Empty where no layer has a window: then the model's own masks are right, and the fast kernels stay.
    """
    windows = {kind.window for kind in kinds} - {None}
    if not windows:
        return {}
    sliding = _mask(positions, n, windows.pop())
    if not by_type:
        return {"attention_mask": sliding}
    return {"attention_mask": {FULL_ATTENTION: _mask(positions, n, None), SLIDING_ATTENTION: sliding}}


def _mask(positions: Any, n: int, window: int | None) -> Any:
    """bool (1, 1, n, S), True for what is seen; None where attention without a mask sees just that."""
    cut = window is not None and int(positions[-1] - positions[0]) >= window
    if not cut and n in (1, len(positions)):
        return None
    return ~unseen(positions[-n:], positions, window)[None, None]


def unseen(queries: Any, keys: Any, window: int | None) -> Any:
    """bool (Q, S): which positions `keys` (S,) lie behind those of `queries` (Q,), or before their window."""
    distance = queries[:, None] - keys[None]
    return distance < 0 if window is None else (distance < 0) | (distance >= window)


def shares(logits: Any, sinks: Any) -> Any:
    """Softmax of float32 (..., H, Q, S) with one more logit per head, which is left out again. Overwrites `logits`."""
    if sinks is None:
        return torch.softmax(logits, dim=-1)
    sink = sinks.float()[:, None, None]
    top = torch.maximum(logits.amax(dim=-1, keepdim=True), sink)
    parts = logits.sub_(top).exp_()
    return parts.div_(parts.sum(dim=-1, keepdim=True) + torch.exp(sink - top))


def capped(logits: Any, softcap: float | None) -> Any:
    """Between plus and minus `softcap`. Overwrites `logits`."""
    return logits if softcap is None else logits.div_(softcap).tanh_().mul_(softcap)


def explicit_attention(
    query: Any, key: Any, value: Any, mask: Any, scale: float, *, softcap: float | None, sinks: Any
) -> Any:
    """(rows, n, H, D): what SDPA can't do. `query`: (rows, H, n, D); `key`, `value`: (rows, KVH, S, D); `mask`: as
    `attention_masks` gives it. Softmax in float32."""
    rows, n_heads, n, width = query.shape
    n_kv, n_seen = key.shape[1:3]
    logits = query.reshape(rows, n_kv, -1, width) @ key.transpose(2, 3)
    logits = capped(logits.float().mul_(scale), softcap).reshape(rows, n_heads, n, n_seen)
    if mask is None and n > 1:
        places = torch.arange(n_seen, device=query.device)
        mask = ~unseen(places[-n:], places, None)[None, None]
    if mask is not None:
        logits.masked_fill_(~mask, float("-inf"))
    weights = shares(logits, sinks).to(value.dtype)
    out = weights.reshape(rows, n_kv, -1, n_seen) @ value
    return out.reshape(rows, n_heads, n, -1).transpose(1, 2).contiguous()
