"""A decoder-only transformer in numpy: RMSNorm, rotary embedding (rotate-half), grouped-query attention, SwiGLU.

It computes what llama, qwen2 and qwen3 compute, one sequence at a time, every position explicit. It is the oracle
of the engine contract: slow, small, and without any code path for speed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from agentctx.prompt import Float32
from agentctx.spec.engines.modules import form_of

Array = npt.NDArray[np.floating[Any]]
# (layer, queries (H, n, D), keys of everything seen so far (KVH, S, D), scale), queries and keys after RoPE
Watcher = Callable[[int, Array, Array, float], None]


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    vocab_size: int
    hidden_size: int = 32
    n_layers: int = 3
    n_heads: int = 4
    n_kv_heads: int = 2
    head_dim: int = 8
    intermediate_size: int = 64
    rope_theta: float = 10_000.0
    norm_eps: float = 1e-5
    qkv_bias: bool = False  # as in qwen2
    out_bias: bool = False  # o_proj too, as in llama with attention_bias
    qk_norm: bool = False  # as in qwen3
    tied: bool = True
    max_position: int = 4096
    eos: tuple[int, ...] = ()

    @property
    def scale(self) -> float:
        return float(self.head_dim**-0.5)


@dataclass(slots=True)
class KeyValues:
    """Keys (KVH, S, D) and values of every layer. Arrays are never changed in place, so a fork is a shallow copy."""

    keys: list[Array] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)

    def fork(self) -> KeyValues:
        return KeyValues(list(self.keys), list(self.values))

    @property
    def length(self) -> int:
        """S: tokens that every layer has seen."""
        return self.keys[0].shape[1] if self.keys else 0

    def first(self, length: int) -> KeyValues:
        """The first `length` tokens."""
        return KeyValues([k[:, :length] for k in self.keys], [v[:, :length] for v in self.values])

    def append(self, layer: int, k: Array, v: Array) -> tuple[Array, Array]:
        if layer == len(self.keys):
            self.keys.append(k)
            self.values.append(v)
        else:
            self.keys[layer] = np.concatenate([self.keys[layer], k], axis=1)
            self.values[layer] = np.concatenate([self.values[layer], v], axis=1)
        return self.keys[layer], self.values[layer]


@dataclass(frozen=True, slots=True, eq=False)
class Decoder:
    """Weights by their Hugging Face names; the arithmetic runs in the weights' dtype."""

    config: DecoderConfig
    weights: Mapping[str, Array]

    @property
    def form(self) -> str:
        return form_of(next(iter(self.weights.values())).dtype, "cpu")

    @property
    def n_params(self) -> int:
        return sum(int(weight.size) for weight in self.weights.values())

    def forward(
        self,
        ids: npt.NDArray[np.integer[Any]],
        positions: npt.NDArray[np.integer[Any]],
        cache: KeyValues,
        *,
        n_layers: int | None = None,
        watch: Watcher | None = None,
    ) -> Float32:
        """float32 (n, V): logits after each of `ids` (n,) at `positions` (n,). Mutates `cache`."""
        x = self.states(ids, positions, cache, n_layers=n_layers, watch=watch)
        head = "model.embed_tokens.weight" if self.config.tied else "lm_head.weight"
        return (x @ self.weights[head].T).astype(np.float32)

    def states(
        self,
        ids: npt.NDArray[np.integer[Any]],
        positions: npt.NDArray[np.integer[Any]],
        cache: KeyValues,
        *,
        n_layers: int | None = None,
        watch: Watcher | None = None,
        after: Callable[[int, Array], None] | None = None,
    ) -> Array:
        """(n, D): states of `ids` after the last layer and the final norm. Mutates `cache`.

        `after`: is shown the depth and the same of every layer.
        """
        x = self.weights["model.embed_tokens.weight"][ids]
        cos, sin = _rotation(self.config, positions, x.dtype)
        for layer in range(n_layers or self.config.n_layers):
            x = self._layer(layer, x, (cos, sin), cache, watch)
            if after is not None:
                after(layer + 1, self._norm("model.norm.weight", x))
        return self._norm("model.norm.weight", x)

    def _layer(
        self, layer: int, x: Array, rotation: tuple[Array, Array], cache: KeyValues, watch: Watcher | None
    ) -> Array:
        name = f"model.layers.{layer}."
        normed = self._norm(name + "input_layernorm.weight", x)
        x = x + self._attention(layer, normed, rotation, cache, watch)
        normed = self._norm(name + "post_attention_layernorm.weight", x)
        gate = self._linear(name + "mlp.gate_proj", normed)
        up = self._linear(name + "mlp.up_proj", normed)
        return x + self._linear(name + "mlp.down_proj", gate / (1 + np.exp(-gate)) * up)

    def _attention(
        self, layer: int, x: Array, rotation: tuple[Array, Array], cache: KeyValues, watch: Watcher | None
    ) -> Array:
        config, name = self.config, f"model.layers.{layer}.self_attn."
        q = _rotate(self._heads(name, "q", x, config.n_heads), *rotation)
        k = _rotate(self._heads(name, "k", x, config.n_kv_heads), *rotation)
        keys, values = cache.append(layer, k, self._heads(name, "v", x, config.n_kv_heads))
        if watch is not None:
            watch(layer, q, keys, config.scale)
        mixed = attend(q, keys, values, config.scale)
        return self._linear(name + "o_proj", mixed.transpose(1, 0, 2).reshape(len(x), -1))

    def _heads(self, name: str, which: str, x: Array, n_heads: int) -> Array:
        """(heads, n, D)"""
        heads = self._linear(f"{name}{which}_proj", x).reshape(len(x), n_heads, self.config.head_dim)
        if self.config.qk_norm and which != "v":
            heads = self._norm(f"{name}{which}_norm.weight", heads)
        return heads.transpose(1, 0, 2)

    def _linear(self, name: str, x: Array) -> Array:
        y = x @ self.weights[name + ".weight"].T
        bias = self.weights.get(name + ".bias")
        return y if bias is None else y + bias

    def _norm(self, name: str, x: Array) -> Array:
        variance = np.mean(np.square(x), axis=-1, keepdims=True)
        normed: Array = self.weights[name] * (x / np.sqrt(variance + x.dtype.type(self.config.norm_eps)))
        return normed


def attend(q: Array, keys: Array, values: Array, scale: float) -> Array:
    """Causal attention (H, n, D) of the last n of the S tokens in `keys`; order is arrival, not position."""
    n_heads, n, _ = q.shape
    repeat = n_heads // keys.shape[0]
    keys, values = np.repeat(keys, repeat, axis=0), np.repeat(values, repeat, axis=0)
    logits = (q @ keys.transpose(0, 2, 1)) * q.dtype.type(scale)
    seen = keys.shape[1]
    future = np.arange(seen)[None, :] > np.arange(seen - n, seen)[:, None]
    logits = np.where(future[None], q.dtype.type(-np.inf), logits)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    mixed: Array = weights @ values
    return mixed


def _rotation(config: DecoderConfig, positions: npt.NDArray[np.integer[Any]], dtype: Any) -> tuple[Array, Array]:
    """cos and sin (n, D) of the rotary embedding."""
    # float32 powers as the models were trained with: at large positions the last bit of a frequency shows.
    exponents = np.arange(0, config.head_dim, 2, dtype=np.float32) / np.float32(config.head_dim)
    frequencies = np.float32(1.0) / np.power(np.float32(config.rope_theta), exponents)
    angles = positions.astype(np.float32)[:, None] * frequencies[None]
    angles = np.concatenate([angles, angles], axis=-1)
    return np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)


def _rotate(x: Array, cos: Array, sin: Array) -> Array:
    half = x.shape[-1] // 2
    turned = np.concatenate([-x[..., half:], x[..., :half]], axis=-1)
    return x * cos + turned * sin


def random_weights(config: DecoderConfig, seed: int, dtype: Any = np.float32) -> dict[str, Array]:
    """Deterministic weights, large enough that attention and logits are far from uniform."""
    rng = np.random.default_rng(seed)
    out: dict[str, Array] = {}
    for name, shape in shapes(config).items():
        draw = rng.standard_normal(shape)
        if name.endswith("norm.weight"):
            draw = 1 + 0.1 * draw
        elif len(shape) == 2 and "embed" not in name:
            draw *= 1.5 / np.sqrt(shape[1])
        out[name] = draw.astype(dtype)
    return out


def shapes(config: DecoderConfig) -> dict[str, tuple[int, ...]]:
    """Name -> shape of every weight, in order."""
    hidden, inner, width = config.hidden_size, config.intermediate_size, config.head_dim
    n_out = {"q": config.n_heads, "k": config.n_kv_heads, "v": config.n_kv_heads}
    out: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (config.vocab_size, hidden)}
    for layer in range(config.n_layers):
        name = f"model.layers.{layer}."
        out[name + "input_layernorm.weight"] = (hidden,)
        out[name + "post_attention_layernorm.weight"] = (hidden,)
        for which, heads in n_out.items():
            out[f"{name}self_attn.{which}_proj.weight"] = (heads * width, hidden)
            if config.qkv_bias:
                out[f"{name}self_attn.{which}_proj.bias"] = (heads * width,)
            if config.qk_norm and which != "v":
                out[f"{name}self_attn.{which}_norm.weight"] = (width,)
        out[name + "self_attn.o_proj.weight"] = (hidden, config.n_heads * width)
        if config.out_bias:
            out[name + "self_attn.o_proj.bias"] = (hidden,)
        out |= {f"{name}mlp.{which}_proj.weight": (inner, hidden) for which in ("gate", "up")}
        out[name + "mlp.down_proj.weight"] = (hidden, inner)
    out["model.norm.weight"] = (hidden,)
    if not config.tied:
        out["lm_head.weight"] = (config.vocab_size, hidden)
    return out
