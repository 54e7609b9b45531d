"""Whether the main model still expects a fix when it reads a part of the prompt."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from agentctx.bench.replay import fidelity as bench
from agentctx.bench.replay.cases import Case, read_cases
from agentctx.config import RunOptions
from agentctx.errors import UsageError
from agentctx.prompt import Section
from agentctx.source import UnitKind
from tests.engines.engine_models import MODELS, build, describe
from tests.trees import Repo
from tests.unit.pipeline.test_with_models import TinyModel, TinyServices
from tests.unit.spec.builders import Builder, by_bytes

CODE = "def add(a, b):\n    return a - b\n\n\n" + "".join(
    f"def other_{n}(value):\n    result = value * {n}\n    return result + {n}\n\n\n" for n in range(12)
)


def case_of(tmp_path: Path, **gold: int) -> tuple[Case, Path]:
    root = tmp_path / "clones/o+calc"
    root.mkdir(parents=True)
    repo = Repo(root)
    repo.git("init", "-q", "-b", "main")
    base = repo.commit({"calc.py": CODE})
    fix = repo.commit({"calc.py": CODE.replace("a - b", "a + b"), "test_calc.py": "from calc import add\n"})
    line = gold.get("line", 2)
    raw = {"id": "calc-1", "repo": "o/calc", "lang": "py", "base": base, "fix": fix, "tests": ["test_calc.py"]}
    (tmp_path / "cases.jsonl").write_text(json.dumps({**raw, "gold": [["calc.py", line, line]]}))
    return read_cases(tmp_path / "cases.jsonl")[0], tmp_path / "clones"


def services(tmp_path: Path) -> TinyServices:
    folder = build(tmp_path / "tiny", **MODELS["llama"], max_position_embeddings=8192)
    return TinyServices({"small": TinyModel(replace(describe(folder), name="small"))})


def request(case: Case, clones: Path, **changes: object) -> bench.Request:
    given: dict[str, object] = {
        "options": RunOptions(model="small", drafter="small", cache=False),
        "keeps": (0.4, 1.0), "window": 1600, "count": 1, "answer": 40, **changes,
    }  # fmt: skip
    return bench.Request((case,), clones, **given)  # type: ignore[arg-type]


def test_every_way_of_reading_is_measured_against_dense(tmp_path: Path) -> None:
    said: list[str] = []
    rows = list(bench.measure(request(*case_of(tmp_path)), services(tmp_path), said.append))
    assert [(row.way, row.keep) for row in rows] == [
        ("dense", 1.0), *((way, keep) for keep in (0.4, 1.0) for way in ("ours", "tokens", "text"))
    ]  # fmt: skip
    by = {(row.way, row.keep): row for row in rows}
    dense = by["dense", 1.0]
    assert dense.kl == 0
    for way in ("ours", "tokens"):  # all of it, at its positions
        assert by[way, 1.0].kept == dense.kept
        assert by[way, 1.0].nll == pytest.approx(dense.nll, abs=1e-4)
        assert by[way, 1.0].kl == pytest.approx(0, abs=1e-6)
    for way in ("ours", "tokens"):
        assert by[way, 0.4].kept <= math.ceil(0.4 * dense.kept) + bench.CHUNK
        assert by[way, 0.4].kl > 0
    assert {row.answer for row in rows} == {40}
    assert said[-1].startswith("1 of 1: calc-1, dense 1 ")
    shown = bench.table(rows)
    assert "1 cases" in shown
    assert len(shown.splitlines()) == 2 + len(rows)
    assert bench.data(rows)["rows"][0]["way"] == "dense"


def test_a_case_whose_fix_is_outside_the_window_is_no_case(tmp_path: Path) -> None:
    case, clones = case_of(tmp_path, line=9999)
    assert list(bench.measure(request(case, clones), services(tmp_path), print)) == []


def test_a_case_that_fails_is_said_and_left_out(tmp_path: Path) -> None:
    case, clones = case_of(tmp_path)
    said: list[str] = []
    rows = list(bench.measure(request(replace(case, base="0" * 40), clones), services(tmp_path), said.append))
    assert rows == []
    assert said[-1].startswith("calc-1: ")


@pytest.mark.parametrize("missing", [{"model": None}, {"drafter": "none"}])
def test_two_models_are_needed(tmp_path: Path, missing: dict[str, str | None]) -> None:
    case, clones = case_of(tmp_path)
    options = replace(RunOptions(model="small", drafter="small"), **missing)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="needs --model and --drafter"):
        list(bench.measure(request(case, clones, options=options), services(tmp_path), print))


def test_the_fix_is_written_as_blocks() -> None:
    old = "".join(f"line {n}\n" for n in range(30))
    new = old.replace("line 5\n", "line five\nand more\n").replace("line 25\n", "")
    first, second = bench.blocks("a.py", old, new)
    assert first.splitlines() == [
        "a.py", "<<<<<<< SEARCH", *(f"line {n}" for n in range(2, 9)), "=======",
        *(f"line {n}" for n in (2, 3, 4)), "line five", "and more", *(f"line {n}" for n in (6, 7, 8)),
        ">>>>>>> REPLACE",
    ]  # fmt: skip
    assert "line 25" in second.split("=======")[0]
    assert "line 25" not in second.split("=======")[1]


def test_cases_come_in_turn_from_each_repository(tmp_path: Path) -> None:
    case, _ = case_of(tmp_path)
    made = [replace(case, id=f"{repo}{n}", repo=repo) for repo in "ab" for n in range(3)]
    assert [one.id for one in bench.in_turn(made)] == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_the_papers_chunks() -> None:
    b = Builder()
    b.unit(100, UnitKind.STATEMENT, section=Section.CODE)
    tokenized = by_bytes(b.build())
    values = np.zeros(100, np.float32)
    values[40] = 32.0  # the second chunk's mean is 1; the last chunk, of 4 tokens, has a higher one
    values[99] = 8.0
    assert bench.best_chunks(tokenized, values, 0.25).positions.tolist() == [*range(96, 100)]
    assert bench.best_chunks(tokenized, values, 0.5).positions.tolist() == [*range(32, 64), *range(96, 100)]
    values[99] = 0.0
    assert bench.best_chunks(tokenized, values, 0.25).positions.tolist() == [*range(32, 64), 99]


def test_divergence_is_that_of_the_two_distributions() -> None:
    logs = bench.log_softmax(np.log(np.array([[0.5, 0.25, 0.25]], np.float32)) + 7)
    other = bench.log_softmax(np.log(np.array([[0.25, 0.5, 0.25]], np.float32)))
    assert bench.divergence(logs, other) == pytest.approx(0.25 * math.log(2), rel=1e-5)
    assert bench.divergence(logs, logs) == 0
