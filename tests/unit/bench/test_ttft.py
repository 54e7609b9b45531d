"""Seconds of selection and sparse prefill beside dense prefill, cold and when most of the prompt was read before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agentctx.bench.speed import ttft as bench
from agentctx.config import RunOptions
from agentctx.errors import UsageError
from agentctx.prompt import Task, TestRef
from tests.engines.engine_models import MODELS, build, describe
from tests.trees import Repo
from tests.unit.bench.test_fidelity import CODE
from tests.unit.pipeline.test_with_models import TinyModel, TinyServices


@pytest.fixture
def services(tmp_path: Path) -> TinyServices:
    folder = build(tmp_path / "tiny", **MODELS["llama"], max_position_embeddings=8192)
    return TinyServices({"small": TinyModel(replace(describe(folder), name="small"))})


def request(root: Path, **changes: object) -> bench.Request:
    options = RunOptions(model="small", drafter="small", scorer="window", cache=False)
    given: dict[str, object] = {"options": options, "tokens": (600, 1500), "keeps": (0.5, 1.0), "repeats": 2}
    return bench.Request(root, **{"task": Task(request="fix add"), **given, **changes})  # type: ignore[arg-type]


def test_rows_of_every_length_keep_rate_and_state(empty: Repo, services: TinyServices) -> None:
    empty.commit({"calc.py": CODE, "more.py": CODE.replace("other", "more")})
    said: list[str] = []
    found = bench.measure(request(empty.root), services, said.append)
    assert [(row.keep, row.state) for row in found.rows] == [
        (keep, state) for _ in range(2) for keep in (0.5, 1.0) for state in ("cold", "repeat")
    ]
    for row in found.rows:
        assert row.ttft_s == pytest.approx(row.selection_s + row.prefill_s, rel=0.5)
        assert row.spread[0] <= row.ratio <= row.spread[1]
        assert row.kept <= row.tokens + 32
        assert (row.known > 0) == (row.state == "repeat" and row.tokens > 512)
        assert (row.drafter, row.model, row.engine, row.layers) == ("small", "small", "reference", row.layers)
    short, long = (next(row for row in found.rows if row.tokens > n and row.keep == 0.5) for n in (0, 700))
    assert short.kept < long.kept
    assert {*found.load_s} == {"main", "drafter"}
    assert said[0].startswith("scorer window (--scorer)")
    shown = bench.table(found)
    assert len(shown.splitlines()) == 2 + len(found.rows)
    assert "loaded apart: main" in shown
    made = bench.as_json(found)
    assert {"rows", "load_s", "weights", "machine"} == {*made}
    assert made["weights"] == {"main": "float32 on cpu", "drafter": "float32 on cpu"}
    assert "(float32 on cpu)" in shown
    contract = {"engine", "drafter", "model", "tokens", "keep", "state", "dense_s", "selection_s", "prefill_s", "ratio"}
    assert contract | {"ttft_s"} <= {*made["rows"][0]}
    assert (empty.root / "calc.py").read_text() == CODE  # the line is added in memory


@pytest.mark.parametrize("missing", [{"model": None}, {"drafter": "none"}])
def test_two_models_are_needed(empty: Repo, services: TinyServices, missing: dict[str, str | None]) -> None:
    empty.commit({"calc.py": CODE})
    made = request(empty.root)
    with pytest.raises(UsageError, match="needs --model and --drafter"):
        bench.measure(replace(made, options=replace(made.options, **missing)), services, print)  # type: ignore[arg-type]


def test_without_code_there_is_nothing_to_edit(empty: Repo, services: TinyServices) -> None:
    empty.commit({"test_calc.py": "def test_add():\n    assert 1 + 2 == 4\n"})
    made = request(empty.root, tokens=(400,), keeps=(1.0,), task=Task(tests=(TestRef("test_calc.py"),)))
    with pytest.raises(UsageError, match="no code is packed"):
        bench.measure(made, services, print)
