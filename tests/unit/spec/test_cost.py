from __future__ import annotations

import dataclasses

import pytest

from agentctx.spec.cost import DECODE_TOKENS, decode_cost, estimate, prefill_cost
from agentctx.spec.protocols import ModelInfo

# Qwen2.5-Coder 0.5B and 1.5B
SMALL = ModelInfo("small", "", 24, 494_032_768, 896, 14, 2, 64, 151_936, 32_768, "d", "qwen2")
LARGE = ModelInfo("large", "", 28, 1_543_714_304, 1536, 12, 2, 128, 151_936, 32_768, "d", "qwen2")


def test_prefill_by_hand() -> None:
    layers = 494_032_768 - 151_936 * 896
    assert prefill_cost(SMALL, 1000) == 2 * layers * 1000 + 2 * 24 * 14 * 64 * 1000**2
    assert prefill_cost(SMALL, 1000, 12) == pytest.approx(prefill_cost(SMALL, 1000) / 2)
    assert prefill_cost(SMALL, 0) == 0


def test_an_untied_head_is_no_layer() -> None:
    untied = dataclasses.replace(SMALL, n_params=SMALL.n_params + 151_936 * 896, tied=False)
    assert prefill_cost(untied, 1000) == prefill_cost(SMALL, 1000)
    assert decode_cost(untied, 3, 7) == decode_cost(SMALL, 3, 7)


def test_a_decode_step_costs_its_prefill_tokens() -> None:
    weights = 2.0 * (494_032_768 - 151_936 * 896)
    assert decode_cost(SMALL, 1) == pytest.approx(DECODE_TOKENS * weights)
    assert decode_cost(SMALL, 7) == pytest.approx(7 * decode_cost(SMALL, 1))
    # Half of the layers read more than half of the weights: the head is read whole.
    assert 0.5 < decode_cost(SMALL, 1, 12) / decode_cost(SMALL, 1) < 0.7


def test_the_whole_model_as_its_own_drafter_never_pays() -> None:
    cost = estimate(LARGE, LARGE, 4096, 1024, n_layers=28, n_lookahead=8, shared_weights=True)
    assert not cost.pays
    assert cost.ratio > 1.2


def test_the_pair_and_early_exit_pay() -> None:
    pair = estimate(LARGE, SMALL, 8192, 1638, n_layers=16)
    assert pair.pays
    # DESIGN 7: the lower bound of this pair is 0.20 + 0.20 to 0.23
    assert 0.35 < pair.ratio < 0.5
    assert estimate(LARGE, LARGE, 4096, 1024, n_layers=10, n_lookahead=8, shared_weights=True).pays


def test_a_short_prompt_does_not_pay() -> None:
    """Eight look-ahead steps cost as much as 170 prompt tokens of the drafter."""
    assert not estimate(LARGE, SMALL, 100, 50, n_layers=24, n_lookahead=8).pays


def test_keeping_everything_does_not_pay() -> None:
    cost = estimate(LARGE, SMALL, 4096, 4096, n_layers=10)
    assert cost.sparse == cost.dense
    assert not cost.pays


def test_the_estimate_grows_with_what_runs() -> None:
    ratios = [estimate(LARGE, SMALL, 4096, 800, n_layers=n).ratio for n in (4, 12, 24)]
    assert ratios == sorted(ratios)
    ahead = estimate(LARGE, SMALL, 4096, 800, n_layers=24, n_lookahead=8)
    assert ahead.ratio > ratios[-1]
    assert estimate(LARGE, SMALL, 4096, 800, n_layers=24, n_lookahead=1).ratio == ratios[-1]
