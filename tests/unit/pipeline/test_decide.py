"""Sparse, dense or text: the choice by its estimate, by hand and by flag."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentctx.config import RunOptions
from agentctx.errors import EngineUnavailable, UsageError
from agentctx.pipeline.decide import plan, refuse_tokenizers, without_effect
from agentctx.prompt import ModelInfo
from agentctx.spec.cost import estimate
from agentctx.spec.scorers import LEARNED
from tests.services import WordTokenizer

MAIN = ModelInfo("main", "/m/main", 30, 1_500_000_000, 1536, 12, 2, 128, 150_000, 32768, "d", "qwen2")
SMALL = ModelInfo("small", "/m/small", 12, 135_000_000, 576, 9, 3, 64, 49_152, 8192, "d", "llama")


def made(options: RunOptions, drafter: ModelInfo = SMALL, *, kept: int = 2000, same: bool = True):  # type: ignore[no-untyped-def]
    return plan(options, MAIN, drafter, packed=8000, kept=kept, same_tokenizer=same)


def test_sparse_where_it_pays() -> None:
    found = made(RunOptions())
    cost = estimate(MAIN, SMALL, 8000, 2000, n_layers=8)
    assert cost.pays
    assert (found.decision.mode, found.score, found.decision.drafter) == ("sparse", True, "small")
    said = f"estimate: selection + sparse prefill is {cost.ratio:.2f} of dense prefill"
    assert found.decision.reason == f"{said}; scorer selective-icr (this drafter isn't calibrated)"
    assert found.decision.cost_dense == 8000.0
    assert found.decision.cost_selection == pytest.approx(cost.selection / cost.dense * 8000, abs=0.1)
    assert found.decision.cost_sparse == pytest.approx(cost.sparse / cost.dense * 8000, abs=0.1)
    assert (found.decision.scorer, found.decision.drafter_layers) == ("selective-icr", 8)


def test_dense_where_it_does_not() -> None:
    found = made(RunOptions(), kept=7900)
    assert (found.decision.mode, found.score, found.decision.drafter) == ("dense", False, None)
    assert found.decision.reason.endswith("of dense prefill; the drafter was not run")
    assert (found.decision.scorer, found.decision.drafter_layers) == (None, None)


def test_flags_decide_and_the_estimate_is_said() -> None:
    forced = made(RunOptions(force_sparse=True), kept=7900)
    assert (forced.decision.mode, forced.score) == ("sparse", True)
    assert forced.decision.reason.startswith("--force-sparse (selection + sparse prefill is 1.")
    dense = made(RunOptions(force_dense=True))
    assert (dense.decision.mode, dense.score) == ("dense", False)
    assert dense.decision.reason.startswith("--force-dense (selection + sparse prefill is 0.")


def test_a_model_that_drafts_for_itself_stops_early() -> None:
    itself = replace(MAIN, name="again")
    found = made(RunOptions(), itself)
    assert (found.n_layers, found.decision.drafter_layers, found.decision.scorer) == (10, 10, "early-exit")
    tiny = replace(MAIN, n_layers=2)
    assert plan(RunOptions(), tiny, tiny, packed=8000, kept=2000, same_tokenizer=True).n_layers == 1


@pytest.mark.parametrize(("scorer", "layers"), [("specprefill", 12), ("gemfilter", 5), ("claa", 6), ("early-exit", 4)])
def test_the_scorer_that_is_asked_for(scorer: str, layers: int) -> None:
    found = made(RunOptions(scorer=scorer, force_sparse=True))
    assert (found.scorer.name, found.decision.scorer, found.decision.drafter_layers) == (scorer, scorer, layers)
    assert found.decision.reason.endswith(f"; scorer {scorer} (--scorer)")


def test_layers_by_hand() -> None:
    assert made(RunOptions(drafter_layers=5, scorer="specprefill")).n_layers == 5
    assert made(RunOptions(drafter_layers=6)).n_layers == 4  # of the first six the middle third
    with pytest.raises(UsageError, match="--drafter-layers 13: small has 12"):
        made(RunOptions(drafter_layers=13))


@pytest.mark.parametrize("scorer", LEARNED)
def test_what_is_learned_needs_a_calibration(scorer: str) -> None:
    with pytest.raises(EngineUnavailable, match=f"the scorer {scorer} is learned") as caught:
        made(RunOptions(scorer=scorer))
    assert "bench calibrate" in (caught.value.hint or "")


def test_an_unknown_scorer_is_refused() -> None:
    with pytest.raises(UsageError, match="no scorer 'best'") as caught:
        made(RunOptions(scorer="best"))
    assert "hybrid, evidence-heads" in (caught.value.hint or "")


def test_another_tokenizer_selects_text() -> None:
    found = made(RunOptions(text_level=True), same=False)
    assert (found.decision.mode, found.score) == ("text", True)
    assert found.decision.reason.startswith("--text-level: the drafter's tokenizer differs (estimate: ")
    assert made(RunOptions(), same=False, kept=7900).decision.mode == "dense"


def test_tokenizers_must_be_the_same_or_text_level_asked_for() -> None:
    class Other(WordTokenizer):
        name, digest = "others", "0" * 64

    assert refuse_tokenizers(RunOptions(), WordTokenizer(), WordTokenizer()) is True
    assert refuse_tokenizers(RunOptions(text_level=True), WordTokenizer(), Other()) is False
    with pytest.raises(UsageError, match="others can't select for words at token positions") as caught:
        refuse_tokenizers(RunOptions(), WordTokenizer(), Other())
    assert caught.value.hint is not None
    assert "--text-level" in caught.value.hint


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, None),
        ({"drafter_dtype": "bfloat16"}, "--drafter-dtype has no effect without a drafter (--drafter none)"),
        (
            {"scorer": "icr", "drafter_layers": 3, "text_level": True},
            "--scorer, --drafter-layers, --text-level have no effect without a drafter (--drafter none)",
        ),
        ({"drafter": "small", "drafter_device": "cpu", "scorer": "icr"}, None),
    ],
)
def test_options_of_a_drafter_that_is_not_there_are_said_to_do_nothing(
    options: dict[str, object], said: str | None
) -> None:
    found = without_effect(RunOptions(**options))  # type: ignore[arg-type]
    assert [(one.code, one.severity, one.message) for one in found] == (
        [("without-effect", "note", said)] if said else []
    )
