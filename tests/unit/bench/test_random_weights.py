"""`bench ttft --random-weights`: shapes of real models, made on the spot."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from agentctx.bench import random_models, shapes
from agentctx.bench import ttft as bench
from agentctx.cli.main import invoke
from agentctx.config import RunOptions
from agentctx.errors import NotEnoughMemory, UsageError
from agentctx.models.memory import Available
from agentctx.prompt import SparsePrompt, Task
from tests.trees import Repo
from tests.unit.bench.test_fidelity import CODE
from tests.unit.pipeline.test_with_models import TinyServices

MORE = "\n\n".join(CODE.replace("other", f"more_{n}") for n in range(4))


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("qwen2.5-0.5b", 494_032_768),
        ("qwen2.5-1.5b", 1_543_714_304),
        ("qwen2.5-3b", 3_085_938_688),
        ("qwen2.5-7b", 7_615_616_512),
        ("qwen2.5-14b", 14_770_033_664),
        ("qwen2.5-32b", 32_763_876_352),
    ],
)
def test_shapes_have_as_many_parameters_as_the_published_models(name: str, published: int) -> None:
    assert shapes.SHAPES[name].n_params == published


def test_which_shapes_are_meant() -> None:
    names = {text: tuple(shape.name for shape in shapes.parse_shapes(text)) for text in ("tiny", "qwen2.5-32b")}
    assert names == {"tiny": ("tiny", "tiny"), "qwen2.5-32b": ("qwen2.5-32b", "qwen2.5-0.5b")}
    assert [shape.name for shape in shapes.parse_shapes("qwen2.5-7b:tiny")] == ["qwen2.5-7b", "tiny"]
    for text in ("huge", "tiny:huge", "", "tiny:"):
        with pytest.raises(UsageError, match="no shape"):
            shapes.parse_shapes(text)


def test_the_models_are_what_the_shape_says_and_the_same_each_time() -> None:
    pytest.importorskip("torch")
    tiny = shapes.SHAPES["tiny"]
    said: list[str] = []
    first, second = (random_models.RandomModel(tiny, 100, said.append) for _ in range(2))
    ids = np.arange(40, dtype=np.int32)
    prompt = SparsePrompt(ids, ids, 40)
    one, other = first.load_engine(), second.load_engine()
    assert one is first.load_engine()
    assert one.model.n_params == tiny.n_params  # type: ignore[attr-defined]
    logits = one.prefill(prompt).logits
    np.testing.assert_array_equal(logits, other.prefill(prompt).logits)
    assert logits.std() > 0
    drafter = first.load_drafter(2)
    assert (drafter.info.n_layers, drafter.model.n_layers) == (2, 2)  # type: ignore[attr-defined]
    assert said[0].startswith("making the model tiny (random weights)")
    assert "making the drafter" in said[-1]


@pytest.mark.parametrize(
    ("what", "load"), [("model", lambda m: m.load_engine()), ("drafter", lambda m: m.load_drafter(2))]
)
def test_what_does_not_fit_is_refused_before_it_is_made(
    monkeypatch: pytest.MonkeyPatch, what: str, load: Callable[[Any], object]
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr("agentctx.models.memory.available", lambda: Available(10**8, "a test"))
    with pytest.raises(NotEnoughMemory, match=f"the {what} tiny"):
        load(random_models.RandomModel(shapes.SHAPES["tiny"], 4096, print))


def test_a_gpu_with_too_little_memory() -> None:
    pytest.importorskip("torch")
    from agentctx.spec.engines.torch_random import Device, require

    gpu = Device("a GPU", "cuda", "bfloat16", 2, free=10**9, chunk=2048, peak=0)
    require(gpu, 10**9, "the model m")
    require(replace(gpu, free=None), 10**12, "the model m")
    with pytest.raises(NotEnoughMemory, match=r"the model m needs 2.0 GB; 1.0 GB are free on a GPU"):
        require(gpu, 2 * 10**9, "the model m")


def test_rows_say_that_weights_are_random(empty: Repo) -> None:
    pytest.importorskip("torch")
    empty.commit({"calc.py": CODE, "more.py": MORE})
    said: list[str] = []
    request = bench.Request(
        empty.root, Task(request="fix add"), RunOptions(cache=False), (2000, 9000), (0.5,), 1,
        random=shapes.parse_shapes("tiny"), warm_up=True,
    )  # fmt: skip
    found = bench.measure(request, TinyServices({}), said.append)
    assert [row.state for row in found.rows] == ["cold", "repeat"] * 2
    assert {row.engine for row in found.rows} == {"torch"}
    assert "tiny (random weights)" in {row.model for row in found.rows}
    made = bench.as_json(found)
    assert made["warm_up"]
    assert made["random_weights"]["model"]["hidden_size"] == 64
    assert {"seed", "dtype", "device", "peak_bytes", "drafter"} <= {*made["random_weights"]}
    assert bench.table(found).splitlines()[-1].endswith("seconds mean something, what is kept does not")
    assert said[0] == "random weights: seconds mean something, what is kept does not"
    assert sum("warm-up done" in line for line in said) == 2


def test_a_repository_that_is_too_small_is_said(empty: Repo) -> None:
    pytest.importorskip("torch")
    empty.commit({"calc.py": CODE})
    said: list[str] = []
    request = bench.Request(
        empty.root, Task(request="fix add"), RunOptions(cache=False), (9000,), (0.5,), 1,
        random=shapes.parse_shapes("tiny"),
    )  # fmt: skip
    [row, _] = bench.measure(request, TinyServices({}), said.append).rows
    assert f"the repository fills {row.tokens} of 9000 tokens" in said


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--random-weights", "huge"], "there is no shape 'huge'"),
        (["--random-weights", "tiny", "--model", "m"], "--random-weights and --model exclude each other"),
        (["--random-weights", "tiny", "--drafter", "m"], "--random-weights and --drafter exclude each other"),
        (["--random-weights", "tiny", "--engine", "openvino"], "runs on torch, not on openvino"),
    ],
)
def test_wrong_usage(empty: Repo, capsys: pytest.CaptureFixture[str], args: list[str], said: str) -> None:
    empty.commit({"calc.py": CODE})
    assert invoke(["bench", "ttft", "x", "--repo", str(empty.root), *args]) == 2
    assert said in capsys.readouterr().err


def test_from_the_command_line(empty: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    empty.commit({"calc.py": CODE, "more.py": MORE})
    args = ["--random-weights", "tiny", "--tokens", "2000", "--keep", "0.5", "--repeats", "1", "--format", "json"]
    assert invoke(["bench", "ttft", "fix add", "--repo", str(empty.root), *args]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["random_weights"]["drafter"]["name"] == "tiny"
    assert not found["warm_up"]
    assert len(found["rows"]) == 2
