"""The scorers: by hand on small rows, learned ones against what they were learned from, all of them on one run."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spec_prompts import make_prompt

from agentctx.errors import EngineUnavailable, ModelUnavailable
from agentctx.prompt import PackFacts, Section, TokenizedPrompt
from agentctx.spec.engines import reference
from agentctx.spec.engines.reference_model import DecoderConfig
from agentctx.spec.reading import Group, Rows, tokens
from agentctx.spec.scorers import LEARNED, SCORERS, calibration, make
from agentctx.spec.scorers.base import MEAN, Aggregate, Asked, Kind, Shallow
from agentctx.spec.scorers.calibration import Calibration, Fusion, HeadWeights, ProbeWeights
from agentctx.spec.scorers.contrast import unit_sums, without_outliers
from agentctx.spec.scorers.hybrid import fused
from agentctx.spec.scorers.joint import read_jointly
from agentctx.spec.scorers.published import max_pool
from agentctx.spec.scorers.queries import code_end, evidence_groups, null_aside, thinned

CONFIG = DecoderConfig(260, n_layers=4, max_position=1024)
DRAFTER = reference.drafter_from(reference.tiny_engine(config=CONFIG))
RNG = np.random.default_rng(3)
PROMPT = make_prompt(
    [
        (Section.SYSTEM, 12),
        (Section.CODE, 40),
        (Section.CODE, 9),
        (Section.EDITED, 30),
        (Section.TESTS, 25),
        (Section.TESTS, 15),
        (Section.LOG, 20),
        (Section.REQUEST, 9),
        (Section.TAIL, 4),
    ]
)


def known(n_layers: int = 4) -> Calibration:
    heads = RNG.standard_normal((3, n_layers, 4)).astype(np.float32)
    width = CONFIG.hidden_size
    return Calibration(
        drafter="tiny",
        digest="abc",
        heads=((0, 1), (2, 3)),
        evidence=HeadWeights(("test", "log", "request"), heads, 0.5),
        fusion=Fusion(1e-4, 0.3, 0.5),
        probe=ProbeWeights(
            3,
            RNG.standard_normal(width).astype(np.float32),
            RNG.standard_normal((width, 2)).astype(np.float32),
            {"test": RNG.standard_normal((width, 2)).astype(np.float32)},
        ),
        about={"tasks": 3},
    )


KNOWN = calibration.from_json(known().to_json(), "test")


def asked(prompt: TokenizedPrompt = PROMPT) -> Asked:
    return Asked(prompt, DRAFTER.tokenizer, CONFIG.n_layers)


def values(name: str, prompt: TokenizedPrompt = PROMPT) -> np.ndarray:
    reading, scoring = make(name, KNOWN).begin(asked(prompt))
    DRAFTER.read(prompt.ids, reading, scoring)
    return scoring.values()


# ---------------------------------------------------------------- queries


def test_the_queries_are_the_failing_tests_the_log_and_the_request() -> None:
    assert code_end(PROMPT) == 91
    groups = {group.name: group.tokens.tolist() for group in evidence_groups(PROMPT)}
    assert groups == {"test": list(range(91, 131)), "log": list(range(131, 151)), "request": list(range(151, 164))}
    failing = replace(PROMPT, document=replace(PROMPT.document, facts=PackFacts(test_units=(5,))))
    assert evidence_groups(failing)[0].tokens.tolist() == list(range(116, 131))


def test_a_prompt_without_tests_and_log_asks_with_the_request() -> None:
    prompt = make_prompt([(Section.CODE, 30), (Section.REQUEST, 5)])
    assert [group.name for group in evidence_groups(prompt)] == ["request"]


def test_many_queries_are_thinned_evenly() -> None:
    at = thinned(tokens(range(1000)), 5)
    assert at.tolist() == [0, 250, 500, 749, 999]
    assert thinned(tokens([3, 9]), 5).tolist() == [3, 9]


def test_the_null_query_stands_behind_the_code() -> None:
    aside = null_aside(PROMPT, DRAFTER.tokenizer)
    assert aside.at == 91
    assert DRAFTER.tokenizer.decode(aside.ids.tolist()).startswith("Failing test:\nN/A\n")
    everything, request = aside.groups
    assert everything.tokens.tolist() == list(range(len(aside.ids)))
    assert DRAFTER.tokenizer.decode(aside.ids[request.tokens].tolist()) == "\nRequest:\nMake the failing test pass.\n"


@pytest.mark.parametrize("bad", [[3, 3], [4, 2]])
def test_a_group_is_in_order(bad: list[int]) -> None:
    with pytest.raises(ValueError, match="not in order"):
        Group("x", tokens(bad))
    with pytest.raises(ValueError, match="2 tokens and"):
        Group("x", tokens([1, 2]), weights=np.ones(3, np.float32))


# ---------------------------------------------------------------- what is learned nothing for


def rows_of(prompt: TokenizedPrompt = PROMPT, n_layers: int = 4) -> dict[str, np.ndarray]:
    """(L, H, T) of each evidence group and the null queries."""
    from agentctx.spec.scorers.contrast import contrast

    found = Rows()
    DRAFTER.read(prompt.ids, contrast(asked(prompt), n_layers), found)
    return {name: np.stack(rows) for name, rows in found.found.items()}


def test_icr_is_the_mean_query_minus_the_null_query() -> None:
    rows = rows_of()
    sizes = {"test": 40, "log": 20, "request": 13}
    expected = np.zeros(164)
    for name, size in sizes.items():
        null = rows["null.request" if name == "request" else "null"]
        expected[:91] += (rows[name] - null)[:, :, :91].sum((0, 1)) * size / 73
    np.testing.assert_allclose(values("icr"), without_outliers(expected.astype(np.float32), PROMPT), rtol=0, atol=1e-5)


def test_values_far_below_their_unit_are_left_out() -> None:
    prompt = make_prompt([(Section.CODE, 20), (Section.CODE, 4)])
    given = np.concatenate([np.ones(19), [-50], [1, 1, 1, -1]]).astype(np.float32)
    found = without_outliers(given, prompt)
    assert found[19] == 0
    assert found[:19].tolist() == [1] * 19
    assert found[20:].tolist() == [1, 1, 1, -1]


def test_selective_icr_takes_the_middle_layers() -> None:
    rows = rows_of(n_layers=3)
    expected = np.zeros(164)
    for name, size in {"test": 40, "log": 20, "request": 13}.items():
        null = rows["null.request" if name == "request" else "null"]
        expected[:91] += (rows[name] - null)[1:3, :, :91].sum((0, 1)) * size / 73
    found = values("selective-icr")
    np.testing.assert_allclose(found, without_outliers(expected.astype(np.float32), PROMPT), rtol=0, atol=1e-5)
    assert make("selective-icr", None).depth(4) == 3


def test_a_prompt_without_code_has_no_contrast() -> None:
    prompt = make_prompt([(Section.TESTS, 30), (Section.REQUEST, 5)])
    with pytest.raises(EngineUnavailable, match="no code before the request"):
        make("icr", None).begin(asked(prompt))


def test_gemfilter_is_one_layers_products() -> None:
    found = Rows()
    DRAFTER.read(PROMPT.ids, make("gemfilter", None).begin(asked())[0], found)
    raw = found.found["last"][1].sum(0)
    assert len(found.found["last"]) == 2
    padded = np.pad(raw, 2)
    expected = np.mean([padded[i : i + 164] for i in range(5)], axis=0)
    np.testing.assert_allclose(values("gemfilter"), expected, rtol=1e-4, atol=1e-5)


def test_max_pool() -> None:
    assert max_pool(np.asarray([0, 3, 0, 0, 1], np.float32), 3).tolist() == [3, 3, 3, 1, 1]


# ---------------------------------------------------------------- what is learned


def test_evidence_heads_are_weighted_differences_in_units_of_their_spread() -> None:
    rows, weights = rows_of(), KNOWN.evidence
    sizes = np.diff(PROMPT.unit_starts)[:4]
    expected = np.zeros(91)
    for g, name in enumerate(("test", "log", "request")):
        null = rows["null.request" if name == "request" else "null"]
        for layer in range(4):
            for head in range(4):
                x = (rows[name] - null)[layer, head, :91]
                features = [x[a : a + n].sum() / n**0.5 for a, n in zip((0, 12, 52, 61), sizes, strict=True)]
                expected += weights.weights[g, layer, head] * x / np.std(features)
    found = values("evidence-heads")
    np.testing.assert_allclose(found[:91], expected, rtol=1e-3, atol=1e-3)
    assert not found[91:].any()


def test_the_drafter_runs_as_deep_as_the_deepest_weight() -> None:
    assert make("hybrid", KNOWN).depth(4) == 4
    assert make("hybrid", replace(KNOWN, fusion=Fusion(1e-4, 0, 0.5))).depth(4) == 3
    assert make("evidence-heads", KNOWN).depth(4) == 4
    assert make("qrhead", KNOWN).depth(4) == 3
    assert make("probe", KNOWN).depth(4) == 3
    assert Shallow(make("evidence-heads", KNOWN), 3).depth(4) == 3


def test_qrhead_sums_its_heads() -> None:
    rows = rows_of()
    expected = np.zeros(164)
    for name, size in {"test": 40, "log": 20, "request": 13}.items():
        null = rows["null.request" if name == "request" else "null"]
        difference = (rows[name] - null)[:, :, :91]
        expected[:91] += (difference[0, 1] + difference[2, 3]) * size / 73
    np.testing.assert_allclose(values("qrhead"), expected, rtol=0, atol=1e-5)


def test_the_probe_projects_states_and_queries() -> None:
    from agentctx.spec.reading import Reading

    found, probe = Rows(), KNOWN.probe
    assert probe is not None
    DRAFTER.read(PROMPT.ids, Reading(n_layers=3, hidden=(3,)), found)
    states = found.states[3]
    query = states[91:131].mean(0) @ probe.queries["test"]
    np.testing.assert_allclose(values("probe"), states @ probe.direction + states @ probe.keys @ query, rtol=1e-3)
    with pytest.raises(EngineUnavailable, match="after layer 3, the drafter stops at 2"):
        Shallow(make("probe", KNOWN), 2).begin(asked())


def test_the_hybrid_adds_log_odds() -> None:
    units = tuple(replace(unit, score=0.1 * unit.index) for unit in PROMPT.document.units)
    prompt = replace(PROMPT, document=replace(PROMPT.document, units=units))
    heads, probe = (MEAN(prompt, values(name, prompt))[:4] for name in ("evidence-heads", "probe"))
    drafter = 0.3 * (heads - heads.mean()) + 0.5 * (probe - probe.mean()) / probe.std()
    found = make("hybrid", KNOWN).aggregate(prompt, values("hybrid", prompt))
    worth = np.log(0.1 * np.arange(9) + 1e-4)
    np.testing.assert_allclose(found[:4], worth[:4] + drafter, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found[4:], worth[4:], rtol=1e-6)
    assert fused(KNOWN.fusion, np.zeros(1), np.zeros(1)) == pytest.approx(np.log(1e-4))


@pytest.mark.parametrize(("heads", "probe"), [(0.3, 0.0), (0.0, 0.5)])
def test_what_has_no_weight_is_not_read(heads: float, probe: float) -> None:
    scorer = make("hybrid", replace(KNOWN, fusion=Fusion(1e-4, heads, probe)))
    reading, scoring = scorer.begin(asked())
    assert bool(reading.groups) == bool(heads)
    assert bool(reading.hidden) == bool(probe)
    DRAFTER.read(PROMPT.ids, reading, scoring)
    alone = MEAN(PROMPT, values("evidence-heads" if heads else "probe"))[:4]
    scale = heads if heads else probe / alone.std()
    expected = scale * (alone - alone.mean())
    np.testing.assert_allclose(MEAN(PROMPT, scoring.values())[:4], expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", LEARNED)
def test_what_is_learned_needs_a_calibration(name: str) -> None:
    with pytest.raises(EngineUnavailable, match=f"the scorer {name} is learned"):
        make(name, None)


# ---------------------------------------------------------------- all of them


@pytest.mark.parametrize("name", SCORERS)
def test_every_scorer_values_every_token(name: str) -> None:
    found = values(name)
    assert found.shape == (164,)
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
    assert len(set(np.round(found[:91], 6).tolist())) > 3


def test_one_run_gives_what_each_gives_alone() -> None:
    scorers = [make(name, KNOWN) for name in SCORERS]
    for name, found in read_jointly(DRAFTER, scorers, asked()).items():
        np.testing.assert_allclose(found, values(name), rtol=1e-4, atol=2e-5, err_msg=name)


def test_scorers_that_stop_share_one_run() -> None:
    class Counting:
        info, tokenizer, n = DRAFTER.info, DRAFTER.tokenizer, 0

        def read(self, *given: object) -> object:
            self.n += 1
            return DRAFTER.read(*given)  # type: ignore[arg-type]

    drafter = Counting()
    names = ("icr", "window", "snapkv", "claa", "gemfilter", "specprefill", "evidence-heads")
    read_jointly(drafter, [make(name, KNOWN) for name in names], asked())  # type: ignore[arg-type]
    assert drafter.n == 1


# ---------------------------------------------------------------- units


def test_aggregates() -> None:
    prompt = make_prompt([(Section.CODE, 4), (Section.CODE, 10), (Section.CODE, 1)])
    given = np.asarray([1, 2, 3, 6, *range(10), 5], np.float32)
    assert MEAN(prompt, given).tolist() == [3, 4.5, 5]
    assert Aggregate(Kind.MAX)(prompt, given).tolist() == [6, 9, 5]
    assert Aggregate(Kind.TOP)(prompt, given).tolist() == [3, 5.5, 5]
    assert Aggregate(Kind.SUM, 0)(prompt, given).tolist() == [12, 45, 5]
    assert Aggregate(Kind.SUM, 0.5)(prompt, given)[0] == 6
    assert [Aggregate(Kind.SUM, 0.5).name, Aggregate(Kind.MAX).name] == ["sum/size^0.5", "max"]


@pytest.mark.parametrize("bad", [[1.0], [1.0, float("nan")], [1.0, float("inf")]])
def test_bad_token_values_are_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="2 tokens"):
        MEAN(make_prompt([(Section.CODE, 2)]), np.asarray(bad, np.float32))


@given(st.lists(st.integers(0, 7), min_size=1, max_size=9))
def test_unit_sums_add_up(sizes: list[int]) -> None:
    starts = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.random.default_rng(0).standard_normal((3, int(starts[-1]))).astype(np.float32)
    expected = [[row[a:b].sum() for a, b in pairwise(starts.tolist())] for row in rows]
    np.testing.assert_allclose(unit_sums(rows, starts), np.asarray(expected).reshape(3, -1), rtol=0, atol=1e-5)


# ---------------------------------------------------------------- the file


def test_a_calibration_survives_its_file(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    file.write_text(KNOWN.to_json())
    again = calibration.load(file, "abc")
    assert again.to_json() == KNOWN.to_json()
    np.testing.assert_array_equal(again.evidence.weights, KNOWN.evidence.weights)
    with pytest.raises(ModelUnavailable, match="made for tiny, whose weights are others"):
        calibration.load(file, "xyz")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text[:40], "damaged"),
        (lambda text: text.replace('"schema":1', '"schema":9'), "its format is 9, this version reads 1"),
        (lambda text: text.replace('"probe":0.5', '"probe":"much"'), "damaged"),
        (
            lambda text: text.replace('"groups":["test","log","request"]', '"groups":["test"]'),
            "not those of its groups",
        ),
        (lambda text: text.replace('"shape":[3,4,4]', '"shape":[3,4,5]'), "damaged"),
    ],
)
def test_a_damaged_calibration_is_refused(tmp_path: Path, change: object, says: str) -> None:
    file = tmp_path / "found.json"
    file.write_text(change(KNOWN.to_json()))  # type: ignore[operator]
    with pytest.raises(ModelUnavailable, match=says):
        calibration.load(file, "abc")


def test_a_calibration_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="can't read the calibration") as caught:
        calibration.load(tmp_path / "none.json", "abc")
    assert "bench calibrate" in (caught.value.hint or "")
    assert calibration.shipped("0" * 64) is None
    assert calibration.shipped("") is None


def test_qrhead_by_first_heads_alone_takes_no_other() -> None:
    first = replace(KNOWN, heads=((0, 0), (2, 0)))
    reading, scoring = make("qrhead", first).begin(asked())
    DRAFTER.read(PROMPT.ids, reading, scoring)
    rows = rows_of()
    expected = np.zeros(164)
    for name, size in {"test": 40, "log": 20, "request": 13}.items():
        null = rows["null.request" if name == "request" else "null"]
        difference = (rows[name] - null)[:, :, :91]
        expected[:91] += (difference[0, 0] + difference[2, 0]) * size / 73
    np.testing.assert_allclose(scoring.values(), expected, rtol=0, atol=1e-5)
