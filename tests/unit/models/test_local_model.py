"""Whether a model fits is asked of the memory that its engine loads it into."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agentctx.cli.services import LocalModel
from agentctx.errors import NotEnoughMemory
from agentctx.models.folder import ModelFolder
from agentctx.models.memory import Available
from agentctx.prompt import ModelInfo
from agentctx.spec.engines.modules import Device

BILLION = ModelInfo(
    "m", "", 24, 10**9, hidden_size=1024, n_heads=16, n_kv_heads=16, head_dim=64, vocab_size=1000, max_position=4096,
    tokenizer_digest="", architecture="llama",
)  # fmt: skip


class Known(LocalModel):
    info = BILLION  # type: ignore[assignment]


def model(said: list[str]) -> Known:
    return Known(ModelFolder("m", Path("m"), None), "torch", 1000, Path("cache"), said.append)


GPU, CPU = Device("cuda:0", "a GPU", "bfloat16", 2, 3 * 10**9), Device("cpu", "CPU", "float32", 4, None)


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Bytes of main memory."""
    found = {"main": 6 * 10**9}
    monkeypatch.setattr("agentctx.models.memory.available", lambda: Available(found["main"], "a test"))
    return found


def test_main_memory_holds_float32(free: dict[str, int]) -> None:
    said: list[str] = []
    model(said)._require_memory(None, "the model", "torch", CPU)
    assert said == ["loading the model m: it needs 4.7 GB of memory, 6.0 GB are free"]
    free["main"] = 4 * 10**9
    with pytest.raises(NotEnoughMemory, match=r"needs 4\.7 GB of memory; 4\.0 GB are free \(a test\)"):
        model(said)._require_memory(None, "the model", "torch", CPU)


def test_bfloat16_takes_half_of_it(free: dict[str, int]) -> None:
    said: list[str] = []
    model(said)._require_memory(None, "the model", "torch", replace(CPU, dtype="bfloat16", width=2))
    assert said == ["loading the model m: it needs 2.6 GB of memory, 6.0 GB are free"]


def test_a_gpu_has_its_own_memory_and_main_memory_does_not_count(free: dict[str, int]) -> None:
    said: list[str] = []
    free["main"] = 10**6
    model(said)._require_memory(None, "the model", "torch", GPU)
    assert said == ["loading the model m: it needs 2.6 GB of memory, 3.0 GB are free"]
    with pytest.raises(NotEnoughMemory, match=r"needs 2\.6 GB of memory; 2\.0 GB are free \(a GPU\)"):
        model(said)._require_memory(None, "the model", "torch", replace(GPU, free_bytes=2 * 10**9))


def test_an_engine_without_a_choice_counts_what_it_always_holds(free: dict[str, int]) -> None:
    said: list[str] = []
    model(said)._require_memory(None, "the model", "reference", None)
    assert said == ["loading the model m: it needs 4.7 GB of memory, 6.0 GB are free"]
