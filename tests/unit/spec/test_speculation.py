"""Which speculative features may run beside sparse prefill; the documentation says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentctx.errors import EngineUnavailable
from agentctx.spec.engines import ENGINES
from agentctx.spec.engines.speculation import FEATURES, refusal, verdict

ROOT = Path(__file__).parents[3]


def test_the_table_of_the_documentation() -> None:
    lines = (ROOT / "docs/engines/speculation.md").read_text().splitlines()
    rows = {
        cells[0]: cells[1:] for cells in ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines) if cells
    }
    for feature in FEATURES:
        assert rows[feature.name] == [verdict(feature, engine) for engine in ("torch", "vllm", "openai")]
        assert {verdict(feature, engine) for engine in ("openvino", "mlx", "reference")} == {"not offered"}


def test_every_engine_has_a_verdict() -> None:
    assert {verdict(feature, engine) for feature in FEATURES for engine in ENGINES} == {
        "allowed",
        "refused",
        "not offered",
    }
    with pytest.raises(EngineUnavailable, match="no engine 'abacus'"):
        verdict(FEATURES[0], "abacus")


@pytest.mark.parametrize("method", [None, "ngram", "draft_model"])
def test_what_may_run(method: str | None) -> None:
    assert refusal(method) is None


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("dflash", "speculative decoding by DFlash: it drafts whole blocks"),
        ("mtp", "speculative decoding by native MTP: it was not tried"),
        ("eagle3", "speculative decoding by EAGLE, Medusa: it was not tried"),
        ("newest", "speculative decoding by 'newest': it was not tried"),
    ],
)
def test_what_may_not(method: str, says: str) -> None:
    assert str(refusal(method)).startswith(says)
