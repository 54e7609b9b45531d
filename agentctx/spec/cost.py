"""What a prefill costs, in FLOPs: whether selecting can pay for itself. Pure, deterministic, no clock.

A prefill is compute-bound: 2 FLOPs per weight and token, plus the causal attention (2 n^2 H D per layer). A decode
step is bound by reading the weights: with 24 prefill tokens per step (Qwen2.5-Coder-0.5B in float32 on two AVX2
cores prefills 109 to 124 tokens/s and decodes 4.8) it is counted as so many prefill tokens. The estimate leaves out
what is the same on both sides: loading, packing, the answer itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentctx.spec.protocols import ModelInfo

DECODE_TOKENS = 24


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """FLOPs until the first token: `dense` alone, or `selection` and then `sparse`."""

    dense: float
    selection: float
    sparse: float

    @property
    def ratio(self) -> float:
        """(selection + sparse) / dense: below 1, selecting pays."""
        return (self.selection + self.sparse) / self.dense

    @property
    def pays(self) -> bool:
        return self.selection + self.sparse < self.dense


def prefill_cost(info: ModelInfo, n_tokens: int, n_layers: int | None = None) -> float:
    """FLOPs to prefill `n_tokens` through the first `n_layers` layers (None = all); the head runs once: left out."""
    layers = _layers(info, n_layers)
    weights = 2.0 * _layer_params(info, layers) * n_tokens
    attention = 2.0 * layers * info.n_heads * info.head_dim * float(n_tokens) ** 2
    return weights + attention


def decode_cost(info: ModelInfo, steps: int, n_layers: int | None = None) -> float:
    """FLOPs that take as long as `steps` decode steps: DECODE_TOKENS prefill tokens each.

    With fewer layers it shrinks with the weights that a step reads; the output head is always read.
    """
    head = float(info.vocab_size * info.hidden_size)
    whole = _layer_params(info, info.n_layers)
    share = (_layer_params(info, _layers(info, n_layers)) + head) / (whole + head)
    return 2.0 * DECODE_TOKENS * whole * share * steps


def estimate(
    main: ModelInfo,
    drafter: ModelInfo,
    n_packed: int,
    n_kept: int,
    *,
    n_layers: int,
    n_lookahead: int = 0,
    shared_weights: bool = False,
) -> CostEstimate:
    """Dense prefill of `n_packed` tokens beside scoring them and prefilling `n_kept`.

    `n_layers`: layers of the drafter that run; `n_lookahead`: its look-ahead steps. `shared_weights`: the drafter is
    the main model's own first layers, so its size is the main model's.
    """
    scorer = main if shared_weights else drafter
    n_layers = min(n_layers, scorer.n_layers)
    steps = max(n_lookahead - 1, 0)
    selection = prefill_cost(scorer, n_packed, n_layers) + decode_cost(scorer, steps, n_layers)
    return CostEstimate(prefill_cost(main, n_packed), selection, prefill_cost(main, n_kept))


def _layers(info: ModelInfo, n_layers: int | None) -> int:
    return info.n_layers if n_layers is None else n_layers


def _layer_params(info: ModelInfo, n_layers: int) -> float:
    """Weights of the layers that run: no embedding, no head."""
    in_layers = max(info.n_params - info.vocab_size * info.hidden_size * (1 if info.tied else 2), 0)
    return in_layers * n_layers / info.n_layers
