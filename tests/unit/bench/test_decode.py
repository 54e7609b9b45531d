"""Seconds by token of an answer after a sparse prefill, beside those after a dense one of the same tokens."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from agentctx.bench.speed import decode as bench
from agentctx.bench.speed.ttft import Request
from agentctx.config import RunOptions
from agentctx.errors import EngineUnavailable, UsageError
from agentctx.prompt import Completion, SparsePrompt, Task
from tests.engines.engine_models import MODELS, build, describe
from tests.trees import Repo
from tests.unit.bench.test_fidelity import CODE
from tests.unit.pipeline.test_with_models import TinyModel, TinyServices


@pytest.fixture
def services(tmp_path: Path) -> TinyServices:
    folder = build(tmp_path / "tiny", **MODELS["llama"], max_position_embeddings=8192)
    return TinyServices({"small": TinyModel(replace(describe(folder), name="small"))})


@pytest.fixture
def root(empty: Repo) -> Path:
    empty.commit({"calc.py": CODE, "more.py": CODE.replace("other", "more")})
    return empty.root


def request(root: Path, **options: object) -> Request:
    made = RunOptions(**{"model": "small", "scorer": "window", "cache": False, **options})  # type: ignore[arg-type]
    return Request(root, Task(request="fix add"), made, (1500,), (0.3, 0.6), 3)


@pytest.mark.parametrize("drafter", ["none", "small"])
def test_a_row_for_every_keep_rate(root: Path, services: TinyServices, drafter: str) -> None:
    said: list[str] = []
    rows = bench.measure(request(root, drafter=drafter), 6, services, said.append)
    assert [row.keep for row in rows] == [0.3, 0.6]
    assert rows[0].kept < rows[1].kept < rows[1].tokens
    for row in rows:
        assert (row.pairs, row.written, row.model, row.engine) == (3, 6, "small", "reference")
        assert row.low <= row.ratio <= row.high
        assert row.sparse_s > 0 < row.dense_s
    assert sum("pair" in line for line in said) == 6
    assert said[0].startswith("scorer window") == (drafter == "small")
    shown = bench.table(rows).splitlines()
    assert len(shown) == 2 + len(rows)
    assert {"rows", "machine"} == {*bench.as_json(rows)}


def test_the_dense_prompt_has_the_same_tokens() -> None:
    sparse = SparsePrompt(np.array([5, 6, 7], np.int32), np.array([0, 4, 9], np.int32), 10)
    dense = bench.without_gaps(sparse)
    assert dense.ids.tolist() == [5, 6, 7]
    assert dense.positions.tolist() == [0, 1, 2]
    assert dense.total == 3


class Recording:
    """An engine that answers with `lengths` in turn, and notes which prompts it was given."""

    def __init__(self, *lengths: int) -> None:
        self.lengths = list(lengths)
        self.totals: list[int] = []

    info = SimpleNamespace(name="recording")

    def prefill(self, prompt: SparsePrompt) -> Recording:
        self.totals.append(prompt.total)
        return self

    def sample(self, n: int, params: object) -> list[Completion]:
        return [Completion("", (1,) * self.lengths.pop(0), "length", 0.0)] * n


def test_who_comes_first_alternates() -> None:
    engine = Recording(*[4] * 9)
    sparse = SparsePrompt(np.array([5, 6], np.int32), np.array([0, 9], np.int32), 10)
    pairs = list(bench._pairs(engine, sparse, 4, 4, lambda text: None))  # type: ignore[arg-type]
    assert len(pairs) == 4
    assert engine.totals == [2, 10, 2, 2, 10, 10, 2, 2, 10]  # the warm-up is dense


def test_an_answer_without_room_is_refused() -> None:
    sparse = SparsePrompt(np.array([5, 6], np.int32), np.array([0, 9], np.int32), 10)
    with pytest.raises(EngineUnavailable, match="has room for 3 of 9 tokens behind 10 positions") as caught:
        bench._written(Recording(3), sparse, 9)  # type: ignore[arg-type]
    assert "--tokens" in (caught.value.hint or "")


def test_a_model_is_needed(root: Path, services: TinyServices) -> None:
    with pytest.raises(UsageError, match="needs --model"):
        bench.measure(request(root, model=None), 4, services, print)
