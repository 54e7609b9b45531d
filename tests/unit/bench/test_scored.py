"""Scorers on a bug fix: read once, selected at several keep rates, beside chance, words and the ranking."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from agentctx.bench.replay import scored as bench
from agentctx.bench.replay.baselines import bm25_scores, random_scores
from agentctx.bench.replay.cases import Case, read_cases
from agentctx.bench.replay.scored import CODE, PROMPT, ScoredRow, Setting, names_used, scored, seconds_of
from agentctx.bench.replay.scored_table import cell, data, paired, table
from agentctx.cli.bench.replay import replay
from agentctx.config import RunOptions
from agentctx.errors import UsageError
from agentctx.prompt import Section
from agentctx.source import Role, UnitKind
from agentctx.spec.index import PromptIndex
from agentctx.spec.scorers import LEARNED, SCORERS
from tests.engines.engine_models import MODELS, build, describe
from tests.trees import Repo
from tests.unit.pipeline.test_with_models import TinyModel, TinyServices
from tests.unit.spec.builders import Builder

CODE_FILE = "def add(a, b):\n    return a - b\n\n\n" + "".join(
    f"def other_{n}(value):\n    result = value * {n}\n    return result + {n}\n\n\n" for n in range(12)
)
TEST_FILE = "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"


@pytest.fixture
def case(tmp_path: Path) -> tuple[Case, Path]:
    root = tmp_path / "clones/o+calc"
    root.mkdir(parents=True)
    repo = Repo(root)
    repo.git("init", "-q", "-b", "main")
    base = repo.commit({"calc.py": CODE_FILE})
    fix = repo.commit({"calc.py": CODE_FILE.replace("a - b", "other_1(a) + b"), "test_calc.py": TEST_FILE})
    line = {
        "id": "calc-1", "repo": "o/calc", "lang": "py", "base": base, "fix": fix, "tests": ["test_calc.py"],
        "failing": ["test_calc.py::test_add"], "gold": [["calc.py", 2, 2]],
    }  # fmt: skip
    (tmp_path / "cases.jsonl").write_text(json.dumps(line))
    return read_cases(tmp_path / "cases.jsonl")[0], tmp_path / "clones"


@pytest.fixture
def model(tmp_path: Path) -> TinyModel:
    folder = build(tmp_path / "tiny", **MODELS["llama"], max_position_embeddings=8192)
    return TinyModel(replace(describe(folder), name="small"))


def setting(model: TinyModel, work: Path, **changes: object) -> Setting:
    given = {"scorers": ("icr", "window"), "keeps": (0.3, 1.0), "ways": (CODE, PROMPT), "window": 1200, **changes}
    return Setting(model=model, known=None, work=work, **given)  # type: ignore[arg-type]


def test_every_scorer_is_measured_on_every_way_and_keep_rate(
    case: tuple[Case, Path], model: TinyModel, tmp_path: Path
) -> None:
    services = TinyServices({"small": model})
    said: list[str] = []
    made = setting(model, tmp_path / "work")
    rows = list(scored([case[0]], case[1], made, services, RunOptions(), said.append))  # type: ignore[arg-type]
    assert {(row.scorer, row.way, row.keep) for row in rows} == {
        (scorer, way, keep)
        for scorer in ("random", "bm25", "rank", "icr", "window")
        for way in (CODE, PROMPT)
        for keep in (0.3, 1.0)
    }
    assert [row.error for row in rows] == [None] * len(rows)
    assert all(row.recall == 1.0 for row in rows if row.keep == 1.0)
    assert all(row.need == 1 for row in rows)
    assert next(row for row in rows if row.scorer == "rank").recall == 1.0
    assert said[0].startswith("1 of 1: calc-1")
    assert model.n_drafters == 1
    again = list(scored([case[0]], case[1], made, services, RunOptions(), said.append))  # type: ignore[arg-type]
    assert again == rows
    assert model.n_drafters == 1  # what the drafter said was kept


def test_a_case_that_fails_counts_as_nothing_kept(case: tuple[Case, Path], model: TinyModel, tmp_path: Path) -> None:
    broken = replace(case[0], base="0" * 40)
    made = setting(model, tmp_path)
    rows = list(scored([broken], case[1], made, TinyServices({}), RunOptions(), lambda _: None))  # type: ignore[arg-type]
    assert {row.recall for row in rows} == {0.0}
    assert all(row.error for row in rows)
    assert cell(rows).errors == len(rows)
    assert "calc-1: " in table(rows, {})


def test_without_scorers_no_drafter_is_loaded(case: tuple[Case, Path], model: TinyModel, tmp_path: Path) -> None:
    made = setting(model, tmp_path, scorers=())
    rows = list(scored([case[0]], case[1], made, TinyServices({}), RunOptions(), lambda _: None))  # type: ignore[arg-type]
    assert {row.scorer for row in rows} == {"random", "bm25", "rank"}
    assert model.n_drafters == 0


def test_every_scorer_is_timed(case: tuple[Case, Path], model: TinyModel, tmp_path: Path) -> None:
    names = tuple(name for name in SCORERS if name not in LEARNED)
    made = setting(model, tmp_path, scorers=names)
    found = seconds_of([case[0]], case[1], made, TinyServices({}), RunOptions())  # type: ignore[arg-type]
    assert set(found) == set(names)
    assert all(seconds > 0 for seconds in found.values())
    assert seconds_of([], case[1], made, TinyServices({}), RunOptions()) == {}  # type: ignore[arg-type]


def test_an_unknown_scorer_is_refused(case: tuple[Case, Path], model: TinyModel, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no scorer 'best'"):
        list(
            scored(
                [case[0]], case[1], setting(model, tmp_path, scorers=("best",)), TinyServices({}), RunOptions(), print
            )
        )  # type: ignore[arg-type]


def test_code_within_a_share_of_the_code(case: tuple[Case, Path], model: TinyModel, tmp_path: Path) -> None:
    made = setting(model, tmp_path)
    fitter, places = bench._packed(case[0], case[1], made, TinyServices({}), RunOptions())  # type: ignore[arg-type]
    assert list(places) == ["other_1"]
    document = fitter.full.document
    for keep in (0.1, 0.5):
        units = bench.code_units(fitter, random_scores(fitter.tokenized, 0), keep)
        code = [u.index for u in document.units if u.section in ("code", "edited")]
        size = sum(len(fitter.full.unit_tokens(u)) for u in units)
        assert size <= keep * sum(len(fitter.full.unit_tokens(u)) for u in code)
        assert all(set(document.units[unit].spine) <= units for unit in units)


def test_words_of_the_evidence_find_the_function_that_it_names(
    case: tuple[Case, Path], model: TinyModel, tmp_path: Path
) -> None:
    fitter, _ = bench._packed(case[0], case[1], setting(model, tmp_path), TinyServices({}), RunOptions())  # type: ignore[arg-type]
    scores = bm25_scores(fitter.tokenized)
    named = [unit for unit in fitter.tokenized.document.units if unit.symbol is not None and unit.section == "code"]
    assert max(named, key=lambda unit: scores[unit.index]).symbol == "calc.py::add"


def rows_of(scorer: str, recalls: list[float], keep: float = 0.2) -> list[ScoredRow]:
    return [
        ScoredRow(f"c{n}", "o/r", scorer, CODE, keep, recall, float(recall == 1)) for n, recall in enumerate(recalls)
    ]


def test_the_table_has_paired_intervals() -> None:
    rows = [*rows_of("rank", [0.0, 0.5, 1.0, 0.5]), *rows_of("hybrid", [0.5, 1.0, 1.0, 1.0])]
    mean, low, high = paired(rows[4:], rows[:4])
    assert mean == 0.375
    assert 0 <= low < mean < high <= 0.5
    text = table(rows, {"hybrid": 12.34})
    assert "code: recall / all / closure at keep" in text
    assert next(line for line in text.splitlines() if line.startswith("  hybrid    ")).split()[:4] == [
        "hybrid", "12.3", "0.875", "0.750",
    ]  # fmt: skip
    assert "hybrid - rank: +0.375 [" in text
    assert data(rows, {"hybrid": 1.0})["rows"][0]["case"] == "c0"


def test_closure_is_over_all_definitions() -> None:
    rows = [replace(row, need=n, have=1.0) for n, row in enumerate(rows_of("rank", [1.0, 1.0]), 1)]
    assert cell(rows).closure == 2 / 3
    assert cell(rows_of("rank", [1.0])).closure is None


@pytest.mark.parametrize(
    "given", [["--scorer", "icr"], ["--keep", "0.3"], ["--way", "prompt"], ["--window", "900"], ["--calibration", "f"],
              ["--timed", "0"], ["--work", "w"], ["--engine", "torch"]],
)  # fmt: skip
def test_what_only_a_drafter_hears_is_refused_without_one(case: tuple[Case, Path], given: list[str]) -> None:
    cases = case[1].parent / "cases.jsonl"
    done = CliRunner().invoke(replay, ["--cases", str(cases), "--mirrors", str(case[1]), *given])
    assert isinstance(done.exception, UsageError)
    assert done.exception.message == f"{given[0]} needs --drafter"


def test_names_that_kept_code_uses_and_which_of_them_are_there() -> None:
    b = Builder()
    file = b.file("a.py")
    f = b.define("a.py::f", file)
    b.define("a.py::g", file)
    b.define("a.py::only_imported", file)
    b.absent("far.py::h")
    request = b.unit(10, UnitKind.REQUEST, section=Section.REQUEST)
    for target, role in (("a.py::g", Role.CALL), ("far.py::h", Role.NAME), ("a.py::only_imported", Role.IMPORT)):
        b.link(f.units[1], target, role=role)
    b.link(request, "a.py::f", role=Role.MENTION)
    index = PromptIndex(b.build())
    header = index.document.definitions["a.py::g"].header
    assert header is not None
    assert names_used(index, frozenset({file, *f.units, request})) == (2, 0)
    assert names_used(index, frozenset({file, *f.units, header})) == (2, 1)
    assert names_used(index, frozenset({request})) == (0, 0)


def test_the_share_of_names_is_shown_by_scorer_and_keep_rate() -> None:
    rows = [ScoredRow("c", "r", "rank", PROMPT, keep, names=10, safe=10 * keep) for keep in (0.2, 0.5)]
    shown = table(rows, {})
    assert "of the names that kept code uses, kept or as a signature:" in shown
    assert ["rank", "0.200", "0.500"] in [line.split() for line in shown.splitlines()]
    assert cell(rows[:1]).safe == 0.2
    assert cell([replace(rows[0], way=CODE, names=0.0, safe=0.0)]).safe is None
