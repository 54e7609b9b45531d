"""Shots -> features -> weights: planted signals are found; scorers compute the features that were learned from."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1] / "spec"))
from spec_prompts import make_prompt

from agentctx.bench.calibration import calibrate as bench
from agentctx.bench.calibration import gather, learn
from agentctx.bench.calibration.features import GROUPS, Task, head_features, task
from agentctx.bench.calibration.learn import _Choice, lightest
from agentctx.bench.calibration.logistic import balanced, fit
from agentctx.bench.calibration.probe_fit import fit_probe
from agentctx.bench.calibration.shoot import shoot
from agentctx.bench.calibration.shots import load, save
from agentctx.bench.folds import folds
from agentctx.cli.bench.calibrate import calibrate as command
from agentctx.errors import UsageError
from agentctx.prompt import Section
from agentctx.spans import LineSpan
from agentctx.spec.engines import reference
from agentctx.spec.engines.reference_model import DecoderConfig
from agentctx.spec.scorers import make
from agentctx.spec.scorers.base import Asked
from agentctx.spec.scorers.calibration import Fusion, from_json

CONFIG = DecoderConfig(260, n_layers=3, max_position=1024)
DRAFTER = reference.drafter_from(reference.tiny_engine(config=CONFIG))


def prompt_of(seed: int = 0):  # type: ignore[no-untyped-def]
    sizes = np.random.default_rng(seed).integers(3, 30, 12).tolist()
    parts = [(Section.SYSTEM, 9), *((Section.CODE, n) for n in sizes)]
    made = make_prompt([*parts, (Section.TESTS, 20), (Section.LOG, 14), (Section.REQUEST, 9)])
    units = tuple(
        replace(unit, path="a.py", lines=LineSpan(10 * unit.index, 10 * unit.index + 3), score=0.01 * unit.index)
        if unit.section is Section.CODE
        else unit
        for unit in made.document.units
    )
    ids = np.random.default_rng(seed).integers(0, 250, made.n_tokens).astype(np.int32)
    return replace(made, document=replace(made.document, units=units), ids=ids)


def shot_of(seed: int = 0):  # type: ignore[no-untyped-def]
    return shoot("f" * 40, "o/r", prompt_of(seed), frozenset({("a.py", 41), ("a.py", 42), ("b.py", 1)}), DRAFTER, 3)


def test_a_shot_holds_the_code_and_what_was_edited(tmp_path: Path) -> None:
    shot = shot_of()
    assert shot.gold.tolist() == [0, 0, 0, 0, 2, *[0] * 8]
    assert (shot.lines, shot.n_tokens) == (3, prompt_of().n_tokens)
    end = int(shot.starts[-1])
    assert set(shot.rows) == {"test", "log", "request", "null", "null.request"}
    assert shot.rows["test"].shape == (3, 4, end)
    assert {depth: states.shape for depth, states in shot.states.items()} == dict.fromkeys((1, 2, 3), (13, 32))
    save(shot, tmp_path / "shots/one.npz")
    again = load(tmp_path / "shots/one.npz")
    assert (again.id, again.repo, again.lines) == (shot.id, shot.repo, shot.lines)
    np.testing.assert_allclose(again.rows["log"], shot.rows["log"], rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(again.starts, shot.starts)
    np.testing.assert_allclose(again.states[2], shot.states[2], rtol=1e-2, atol=1e-3)
    np.testing.assert_array_equal(again.asked[3]["log"], shot.asked[3]["log"])


def test_a_damaged_shot_is_said(tmp_path: Path) -> None:
    file = tmp_path / "bad.npz"
    file.write_bytes(b"PK nothing")
    with pytest.raises(UsageError, match="holds no capture"):
        load(file)


def test_what_is_learned_from_is_what_the_scorer_computes() -> None:
    """Weights over a task's features and the scorer with these weights put units in the same order."""
    prompt = prompt_of(5)
    shot = shoot("f" * 40, "o/r", prompt, frozenset({("a.py", 41)}), DRAFTER, 3)
    shape = learn.Shape(3, 4)
    flat = np.random.default_rng(1).standard_normal(shape.n_features)
    weights = shape.weights(flat)
    from agentctx.spec.scorers.contrast import EvidenceHeads

    scorer = EvidenceHeads(weights)
    reading, scoring = scorer.begin(Asked(prompt, DRAFTER.tokenizer, 3))
    DRAFTER.read(prompt.ids, reading, scoring)
    units = scorer.aggregate(prompt, scoring.values())
    expected = flat @ head_features(shot, 3)
    np.testing.assert_allclose(units[:13], expected, rtol=1e-3, atol=1e-3)


def planted(number: int, n_features: int, signal: int, strength: float = 2.0) -> Task:
    rng = np.random.default_rng(number)
    n = 30
    gold = np.zeros(n)
    gold[rng.integers(0, n, 2)] = 3
    heads = rng.standard_normal((n, n_features)).astype(np.float32)
    heads[:, signal] += strength * (gold > 0)
    states = rng.standard_normal((n, 8)).astype(np.float32)
    states[:, 2] += strength * (gold > 0)
    worth = rng.random(n) + 0.3 * (gold > 0)
    asked = {group: rng.standard_normal(8).astype(np.float32) for group in GROUPS}
    sizes = rng.integers(5, 50, n).astype(np.float64)
    return Task(f"r{number % 6}", np.arange(n), heads, states, asked, worth, sizes, gold, int(sizes.sum()), 6)


def test_a_planted_head_is_found() -> None:
    shape = learn.Shape(2, 4)
    signal = (1 * 2 + 1) * 4 + 3  # group log, layer 1, head 3
    tasks = [planted(n, shape.n_features, signal) for n in range(60)]
    said: list[str] = []
    found, figures = learn.learn({2: tasks}, 4, "tiny", "d" * 64, {"window": 4096}, said.append)
    best = np.unravel_index(np.abs(found.evidence.weights).argmax(), found.evidence.weights.shape)
    assert best == (1, 1, 3)
    assert (1, 3) in found.heads
    assert figures["evidence-heads"].auc > 0.8 > figures["random"].auc
    assert figures["hybrid"].recall[1] > figures["rank"].recall[1]
    assert figures["probe"].auc > 0.6
    assert found.fusion.heads > 0
    again = from_json(found.to_json(), "x")
    assert again.about["tasks"] == 60
    assert again.about["unseen"]["random"]["auc"] == round(figures["random"].auc, 4)
    assert make("hybrid", again).depth(2) == 2
    assert learn.learn({2: tasks}, 4, "tiny", "d" * 64, {"window": 4096}, said.append)[0].to_json() == found.to_json()
    assert said[0].startswith("first 2 layers: 0.")


def test_the_shallowest_depth_that_finds_as_much_is_taken() -> None:
    """The second layer's head tells; the third adds nothing."""
    shallow = learn.Shape(2, 4)
    tasks = [planted(n, shallow.n_features, (1 * 2 + 1) * 4 + 3, 6.0) for n in range(40)]
    rng = np.random.default_rng(0)

    def deeper(one: Task) -> Task:
        shaped = one.heads.reshape(30, 3, 2, 4)
        noise = rng.standard_normal((30, 3, 1, 4)).astype(np.float32)
        return replace(one, heads=np.concatenate([shaped, noise], axis=2).reshape(30, -1))

    def blind(one: Task) -> Task:
        noise = rng.standard_normal(one.states.shape).astype(np.float32)
        return replace(one, heads=one.heads.reshape(30, 3, 2, 4)[:, :, :1].reshape(30, -1), states=noise)

    by_depth = {1: [blind(one) for one in tasks], 2: tasks, 3: [deeper(one) for one in tasks]}
    found, _ = learn.learn(by_depth, 4, "tiny", "d" * 64, {}, lambda _: None)
    assert found.evidence.weights.shape == (3, 2, 4)
    assert list(found.about["depths"]) == ["1", "2", "3"]
    assert found.about["depths"]["2"] > found.about["depths"]["1"]


def test_too_few_tasks_are_refused() -> None:
    with pytest.raises(UsageError, match="5 bug fixes with edited code in the window are too few"):
        learn.learn({2: [planted(n, 24, 0) for n in range(5)]}, 4, "t", "d", {}, print)


def test_repositories_stay_together_and_one_is_cut_into_blocks() -> None:
    tasks = [planted(n, 24, 0) for n in range(30)]
    of = folds([one.repo for one in tasks], 3)
    for repo in {one.repo for one in tasks}:
        assert len({fold for one, fold in zip(tasks, of, strict=True) if one.repo == repo}) == 1
    assert folds(["a"] * 30, 3) == [0] * 10 + [1] * 10 + [2] * 10


def test_the_regression_finds_its_minimum() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 3))
    y = rng.random(400) < 1 / (1 + np.exp(-(x @ [1.0, -2.0, 0.0])))
    penalty = np.full(3, 0.5)
    w = fit(x, y, np.ones(400), penalty)
    gradient = x.T @ (1 / (1 + np.exp(-(x @ w))) - y) + penalty * w
    np.testing.assert_allclose(gradient, 0, atol=1e-6)
    assert w[0] > 0.5
    assert w[1] < -1
    assert balanced(np.asarray([0, 3, 0, 0])).tolist() == pytest.approx([1 / 6, 1 / 2, 1 / 6, 1 / 6])


def test_a_probes_gradient_is_that_of_its_loss() -> None:
    from agentctx.bench.calibration.probe_fit import _gradients

    one = planted(3, 24, 0)
    rng = np.random.default_rng(0)
    direction, keys = rng.standard_normal(8), rng.standard_normal((8, 2))
    queries = [rng.standard_normal((8, 2)) for _ in GROUPS]

    def loss() -> float:
        z = sum(one.asked[group] @ matrix for group, matrix in zip(GROUPS, queries, strict=True))
        scores = one.states.astype(np.float64) @ (direction + keys @ z)
        chance = np.exp(scores - scores.max())
        return float(-np.log(chance[one.gold > 0].sum() / chance.sum()))

    found = _gradients(one, direction, keys, queries, np.float32(1))  # type: ignore[arg-type]
    for value, gradient in zip((direction, keys, *queries), found, strict=True):
        at = tuple(int(n) // 2 for n in value.shape)
        before = loss()
        value[at] += 1e-5
        assert (loss() - before) / 1e-5 == pytest.approx(float(gradient[at]), rel=1e-2, abs=1e-3)
        value[at] -= 1e-5


def test_a_probe_is_the_same_every_time() -> None:
    tasks = [planted(n, 24, 0) for n in range(20)]
    one, two = fit_probe(tasks, 3, epochs=2), fit_probe(tasks, 3, epochs=2)
    np.testing.assert_array_equal(one.direction, two.direction)
    assert set(one.queries) == set(GROUPS)


def test_recall_counts_what_fits() -> None:
    one = replace(planted(0, 24, 0), sizes=np.asarray([10.0, 10, 80]), gold=np.asarray([1.0, 3, 4]), code=100)
    scores = np.asarray([3.0, 1, 2])
    assert learn.recall(one, scores, 0.1) == 1 / 8
    assert learn.recall(one, scores, 0.2) == 4 / 8
    assert learn.recall(one, scores, 0.9) == 5 / 8


def test_the_table_and_the_file(tmp_path: Path) -> None:
    shape = learn.Shape(2, 4)
    tasks = [planted(n, shape.n_features, 5) for n in range(24)]
    found, figures = learn.learn({2: tasks}, 4, "tiny", "d" * 64, {}, lambda _: None)
    text = bench.table(figures)
    assert text.splitlines()[0].split()[-5:] == ["0.1", "0.2", "0.3", "0.5", "auc"]
    assert {line.split()[0] for line in text.splitlines()[1:]} == set(figures)
    bench.write(found, tmp_path / "new/found.json")
    assert json.loads((tmp_path / "new/found.json").read_text())["drafter"] == "tiny"
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(UsageError, match="can't write"):
        bench.write(found, blocked / "found.json")


def test_the_command_needs_a_model_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("lightgbm")
    monkeypatch.setenv("AGENTCTX_CACHE_DIR", str(tmp_path))
    done = CliRunner().invoke(command, ["--drafter", "nothing-of-that-name", "--work", str(tmp_path)])
    assert done.exit_code != 0
    assert done.exception is not None


def test_windows_are_drawn_evenly_from_repositories() -> None:
    """Every beginning of the order holds as many of each repository."""
    wanted = gather.Wanted("o/r", 12, example_of("ab" * 20), (np.zeros(1), np.zeros(1)))
    assert wanted.file == "o+r-abababababab-0012.npz"
    pool = gather.Pool({}, (wanted,), {("o/r", "ab" * 20): (11, 12)}, 40)
    assert pool.same["o/r", wanted.example.id].index(12) == 1


def example_of(id: str):  # type: ignore[no-untyped-def]
    from agentctx.bench.ranking.mine import Example

    nothing = np.zeros(0)
    return Example(id, nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing, 0, 0.0)  # type: ignore[arg-type]


def test_tasks_leave_support_and_empty_units_out() -> None:
    shot = shot_of()
    support = shot.support.copy()
    support[3] = True
    one = task(replace(shot, support=support), 3)
    assert 3 not in one.units.tolist()
    assert one.heads.shape == (len(one.units), 3 * 3 * 4)
    assert task(shot, 2).heads.shape[1] == 3 * 2 * 4
    np.testing.assert_allclose(one.states.mean(axis=0), 0, atol=1e-5)


def test_the_lightest_weights_that_cannot_be_told_from_the_best() -> None:
    def choice(heads: float, probe: float, *recalls: float) -> _Choice:
        return _Choice(Fusion(0.1, heads, probe), (), np.array(recalls))

    best = choice(0.6, 0.7, 0.5, 0.9, 0.7, 0.7)
    near = choice(0.1, 0.2, 0.6, 0.8, 0.6, 0.75)  # 0.0125 behind, with a standard error of 0.04
    far = choice(0.0, 0.2, 0.4, 0.8, 0.6, 0.6)  # each a tenth behind
    same = choice(0.2, 0.1, 0.6, 0.8, 0.6, 0.7)  # as light as `near`, and worse
    assert lightest([far, best, near]) is near
    assert lightest([far, best]) is best
    assert lightest([same, far, near, best]) is near
