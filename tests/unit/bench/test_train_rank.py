"""Bug fixes of a history -> examples -> a model; the model's evaluator against the library that trained it."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from agentctx.bench.ranking import train, train_rank
from agentctx.bench.ranking.examples import load, save
from agentctx.bench.ranking.export import stage
from agentctx.bench.ranking.fixes import fixes
from agentctx.bench.ranking.mine import mine, pseudo_log
from agentctx.bench.ranking.past import Pasts
from agentctx.bench.ranking.trees import Trees
from agentctx.bench.replay.cases import read_cases
from agentctx.bench.replay.measure import Row, figures
from agentctx.bench.replay.table import data, table
from agentctx.cli.bench.train_rank import train_rank as command
from agentctx.errors import UnavailableError, UsageError
from agentctx.prompt import ChangeSource, Evidence, FileChange
from agentctx.repo.ranking.model import from_json
from agentctx.repo.ranking.model import load as load_model
from tests.trees import Repo

ADD = "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return a * 2\n"
TEST = "from calc import add, double\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"


@pytest.fixture
def history(tmp_path: Path) -> Repo:
    """Three fixes (an edit, a pure insertion, an edit with a new test file), and commits that are none."""
    root = tmp_path / "clone"
    root.mkdir()
    repo = Repo(root)
    repo.git("init", "-q", "-b", "main")
    repo.commit({"calc.py": ADD, "README.md": "calc\n"})
    repo.commit({"calc.py": ADD.replace("a - b", "a + b"), "test_calc.py": TEST})
    repo.commit({"README.md": "only words\n"})
    repo.commit({"calc.py": ADD.replace("a - b", "a+b")})
    longer = ADD.replace("a - b", "a+b").replace("    return a * 2", "    a = +a\n    return a * 2")
    repo.commit({"calc.py": longer, "test_calc.py": TEST + "\n\ndef test_double():\n    assert double(1) == 2\n"})
    repo.commit({"new.py": "x = 1\n", "test_calc.py": TEST})
    return repo


def test_what_counts_as_a_fix(history: Repo) -> None:
    """Edited lines are those of the parent; of what is only added, the line before it. New code is no fix."""
    found = list(fixes(history.root, 10))
    assert [(fix.gold, [path for path, _ in fix.tests]) for fix in found] == [
        ((("calc.py", 5, 5),), ["test_calc.py"]),
        ((("calc.py", 2, 2),), ["test_calc.py"]),
    ]
    assert len(list(fixes(history.root, 1))) == 1


def test_trees_are_read_from_objects(history: Repo) -> None:
    trees = Trees(history.root)
    head = history.git("rev-parse", "HEAD").strip()
    assert [file.path for file in trees.files(head)] == ["README.md", "calc.py", "new.py", "test_calc.py"]
    oid = history.git("rev-parse", "HEAD~4:test_calc.py").strip()
    replaced = {file.path: file for file in trees.files(f"{head}~5", {"test_calc.py": oid})}
    assert replaced["test_calc.py"].data == TEST.encode()
    assert replaced["test_calc.py"].is_test
    assert replaced["calc.py"].language == "python"


def test_the_past_of_a_commit_does_not_hold_it(history: Repo) -> None:
    head = history.git("rev-parse", "HEAD").strip()
    past = Pasts(history.root).before(head)
    assert past.recency("new.py") == 0
    assert past.recency("calc.py") == 1
    assert past.cochange("calc.py", ["test_calc.py"]) == 1


def test_examples_know_the_edited_chunk(history: Repo, tmp_path: Path) -> None:
    found = list(mine(history.root, 0, 10, lambda _: None))
    by_fix = {one.id: one for one in found}
    assert len(by_fix) == 2
    for one in by_fix.values():
        assert one.gold.sum() == 1
        assert one.unit_gold.sum() == 1
        assert one.lost == 0
        assert one.gold[one.unit_of[int(np.argmax(one.unit_gold))]] == 1
    names = train_rank.feature_names()
    save(found, names, tmp_path / "x.npz")
    again_names, again = load(tmp_path / "x.npz")
    assert again_names == names
    assert [one.id for one in again] == [one.id for one in found]
    assert np.array_equal(again[0].features, found[0].features, equal_nan=True)
    assert np.array_equal(again[0].nodes, found[0].nodes)


def test_a_damaged_file_of_examples(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(b"PK\x03\x04 no")
    with pytest.raises(UsageError, match=r"x\.npz holds no examples"):
        load(tmp_path / "x.npz")


def test_a_pseudo_log_is_what_the_tests_assert() -> None:
    change = FileChange(
        "t.py", ChangeSource.STAGED, "modified", added="x = 1\nassert parse_args(x) == 2\n", is_test=True
    )
    made = pseudo_log(Evidence(changes=(change,)))
    assert made.error_lines == ("assert parse_args(x) == 2",)
    assert "parse_args" in made.mentions


def test_repositories_stay_together_in_folds() -> None:
    examples: dict[str, list[object]] = {"a": [0] * 5, "b": [0] * 3, "c": [0] * 2}
    assert train.folds_of(examples, 2) == [0] * 5 + [1] * 3 + [1] * 2  # type: ignore[arg-type]
    assert train.folds_of({"a": [0] * 4}, 2) == [0, 0, 1, 1]  # type: ignore[dict-item]


def test_calibrated_chances_are_shares() -> None:
    rng = np.random.default_rng(0)
    raw = rng.normal(size=4000)
    gold = rng.random(4000) < 1 / (1 + np.exp(-(0.5 * raw - 2)))
    scale, shift = train.calibrate([train.Part(raw[:, None], gold, np.ones(4000))], [raw])
    assert scale == pytest.approx(0.5, abs=0.12)
    assert shift == pytest.approx(-2, abs=0.12)


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(UnavailableError, match="LightGBM") as error:
        train.require()
    assert error.value.exit_code == 4
    assert error.value.hint == "pip install 'agentctx[train]'"


def test_the_evaluator_says_what_the_library_says() -> None:
    lightgbm = pytest.importorskip("lightgbm", reason="the extra 'train' is not installed")
    rng = np.random.default_rng(1)
    values = np.round(rng.normal(size=(600, 5)), 3)
    values[rng.random(values.shape) < 0.1] = np.nan
    values[:, 4] = np.round(rng.random(600), 3)  # never unknown while it learns
    gold = (np.nan_to_num(values[:, 0]) + np.isnan(values[:, 1]) > 0.5).astype(float)
    options = {"objective": "binary", "num_leaves": 8, "verbose": -1, "num_threads": 1, "seed": 3}
    booster = lightgbm.train(options, lightgbm.Dataset(values, gold), 20)
    made = stage(booster.dump_model(), list("abcde"), 1.0, 0.0)
    model = from_json(json.dumps({"schema": 1, "trained": {}, "stages": {"chunk": made, "part": made}}), "t")
    fresh = np.vstack([values, np.full((1, 5), np.nan), np.zeros((1, 5))])
    expected = booster.predict(fresh, raw_score=True)
    assert np.abs(model.stages["chunk"].raw(fresh) - expected).max() < 1e-4
    assert len({round(value, 6) for value in expected}) > 50


def long_history(tmp_path: Path) -> Repo:
    """Twelve fixes; the test names the function that was wrong."""
    root = tmp_path / "long"
    root.mkdir()
    repo = Repo(root)
    repo.git("init", "-q", "-b", "main")
    rng = random.Random(0)
    bodies = {
        f"step_{n}": f"    total = value * {n} - 1\n    print('step {n} of many, long enough for a chunk')\n"
        for n in range(12)
    }
    tests = ""
    repo.commit({"steps.py": source(bodies)})
    for name in rng.sample(sorted(bodies), 12):
        bodies[name] = bodies[name].replace("- 1", "+ 1")
        tests += f"\n\ndef test_{name}():\n    assert {name}(2) == 7\n"
        repo.commit({"steps.py": source(bodies), "test_steps.py": "from steps import *\n" + tests})
    return repo


def source(bodies: dict[str, str]) -> str:
    return "\n\n".join(f"def {name}(value):\n{body}    return total\n" for name, body in bodies.items())


def test_the_command_adds_to_the_built_in_model(tmp_path: Path) -> None:
    pytest.importorskip("lightgbm", reason="the extra 'train' is not installed")
    repo, out, work = long_history(tmp_path), tmp_path / "rank.json", tmp_path / "work"
    arguments = [
        "--repo",
        str(repo.root),
        "--history",
        "20",
        "--out",
        str(out),
        "--work",
        str(work),
        "--rounds",
        "3",
        "2",
    ]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0, done.output
    assert "12 fixes: long 12" in done.output
    assert "--rank-model" in done.output
    model = load_model(out)
    assert model.trained["fixes"] == {"long": 12}
    assert model.trained["tuned"] is True
    files = sorted(path.name for path in work.iterdir())
    assert len(files) == 1
    again = CliRunner().invoke(command, [*arguments, "--mine-only"])
    assert again.exit_code == 0
    assert "fix 1," not in again.output  # read from the file


def test_too_few_fixes(history: Repo, tmp_path: Path) -> None:
    pytest.importorskip("lightgbm", reason="the extra 'train' is not installed")
    found = train_rank.gather([history.root], 10, tmp_path / "work", lambda _: None)
    with pytest.raises(UsageError, match="too few"):
        train_rank.train(found, train.Settings(), lambda _: None)


# ---------------------------------------------------------------- replay


def test_figures_of_a_replay() -> None:
    rows = [
        Row("a", "r", 100, recall=1.0, all=True, need=2, have=1, kept=90),
        Row("b", "r", 100, recall=0.5, all=False, need=0, have=0, kept=101),
        Row("c", "r", 100, error="no such commit"),
    ]
    made = figures(rows)
    assert (made.n, made.recall, made.closure, made.kept, made.over, made.errors) == (3, 0.5, 0.5, 95.5, 1, 1)
    assert made.all == pytest.approx(1 / 3)
    assert made.interval[0] <= made.all <= made.interval[1]
    assert "recall 0.500  all 0.333" in table(rows, [100])
    assert data(rows, [100])["figures"]["100"]["all"]["n"] == 3


def test_cases_are_read_with_their_logs(tmp_path: Path) -> None:
    line = {
        "id": "x",
        "repo": "o/r",
        "lang": "py",
        "base": "b",
        "fix": "f",
        "tests": ["t.py"],
        "gold": [["a.py", 2, 3]],
    }
    (tmp_path / "cases.jsonl").write_text(json.dumps(line) + "\n\n")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/x.log").write_text("E\n")
    (case,) = read_cases(tmp_path / "cases.jsonl")
    assert case.gold_lines == {("a.py", 2), ("a.py", 3)}
    assert case.log == tmp_path / "logs/x.log"
    (tmp_path / "cases.jsonl").write_text("{}\n")
    with pytest.raises(UsageError, match=r"cases\.jsonl:1 is no case"):
        read_cases(tmp_path / "cases.jsonl")
