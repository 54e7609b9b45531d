"""The model's data file: what the trees say, by hand, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agentctx.errors import ModelUnavailable
from agentctx.repo.ranking import model
from agentctx.repo.ranking.parts import PARTS

# a <= 0.5 ? (b <= 2 ? 1 : -1) : 3, unknown a goes right, unknown b left; and a tree of one leaf.
TREES = [
    {"f": [0, 1, -1, -1, -1], "v": [0.5, 0.25, 1.0, -1.0, 3.0], "t": [0.5, 2.0], "r": [4, 3], "n": [0, 1]},
    {"f": [-1], "v": [0.125], "t": [], "r": [], "n": []},
]
NAN = float("nan")


def stage(**changes: Any) -> dict[str, Any]:
    return {"features": ["a", "b"], "scale": 2.0, "shift": -1.0, "trees": TREES, **changes}


def raw(**changes: Any) -> dict[str, Any]:
    return {"schema": 1, "trained": {}, "stages": dict.fromkeys(model.STAGES, stage(**changes))}


def trees() -> model.Trees:
    return model.from_json(json.dumps(raw()), "t").stages["chunk"]


@pytest.mark.parametrize(
    ("a", "b", "output"),
    [(0.0, 2.0, 1.0), (0.5, 2.001, -1.0), (0.501, 0.0, 3.0), (NAN, 0.0, 3.0), (0.0, NAN, 1.0), (-9.0, 9.0, -1.0)],
)
def test_values_find_their_leaf(a: float, b: float, output: float) -> None:
    made = trees()
    assert made.raw(np.array([[a, b]])).tolist() == [output + 0.125]
    chance = 1 / (1 + np.exp(-(2 * (output + 0.125) - 1)))
    assert made.probability(np.array([[a, b]]))[0] == pytest.approx(chance, abs=1e-9)


def test_contributions_are_what_each_step_added() -> None:
    """From 0.5 over 0.25 to -1: a took 0.25 away, b took 1.25."""
    _, found = trees().explained(np.array([[0.0, 5.0], [1.0, 0.0]]), np.array([0, 1]), 2)
    assert found.tolist() == [[-0.25, -1.25], [2.5, 0.0]]


def test_rows_do_not_depend_on_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).normal(size=(50, 2))
    whole = trees().raw(values)
    monkeypatch.setattr(model, "_BLOCK", 6)
    assert trees().raw(values).tolist() == whole.tolist()
    assert trees().raw(np.zeros((0, 2))).tolist() == []
    with pytest.raises(ValueError, match="3"):
        trees().raw(np.zeros((1, 3)))


BROKEN = {
    "no json": "{",
    "a list": "[]",
    "other format": json.dumps({**raw(), "schema": 2}),
    "no stages": json.dumps({"schema": 1, "trained": {}}),
    "a stage is missing": json.dumps({**raw(), "stages": {"chunk": stage()}}),
    "a feature that isn't there": json.dumps(raw(features=["a"])),
    "lists of different lengths": json.dumps(raw(trees=[{**TREES[0], "v": [1.0]}])),
    "thresholds are missing": json.dumps(raw(trees=[{**TREES[0], "t": [0.5]}])),
    "a loop": json.dumps(raw(trees=[{**TREES[0], "r": [4, 1]}])),
    "a node twice": json.dumps(raw(trees=[{**TREES[0], "r": [3, 3]}])),
    "an empty tree": json.dumps(raw(trees=[{key: [] for key in "fvtrn"}])),
    "no number": json.dumps(raw(scale=NAN)),
    "an infinite leaf": json.dumps(raw(trees=[{**TREES[0], "v": [0, 0, 0, 0, float("inf")]}])),
    "words": json.dumps(raw(trees=[{**TREES[0], "t": ["x", "y"]}])),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_damaged_file_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "rank.json"
    file.write_text(text)
    with pytest.raises(ModelUnavailable, match=r"rank\.json\) is damaged") as error:
        model.load(file)
    assert error.value.hint is not None
    assert "train-rank" in error.value.hint
    assert error.value.exit_code == 4


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="No such file"):
        model.load(tmp_path / "none.json")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelUnavailable, match="not text"):
        model.load(tmp_path / "binary")
    with pytest.raises(ModelUnavailable, match="directory"):
        model.load(tmp_path)


def test_the_built_in_model_is_small_and_knows_its_features() -> None:
    from agentctx.bench.ranking.train_rank import feature_names

    assert len(model.shipped_text()) < 300_000
    stages = model.shipped().stages
    names = feature_names()
    assert set(stages["chunk"].features) <= set(names)
    assert set(stages["part"].features) <= set(PARTS)
    assert model.shipped().trained["fixes"]
