"""Whether a model fits is asked of the memory that its engine loads it into."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentctx.cli.services import LocalModel
from agentctx.errors import EngineUnavailable, NotEnoughMemory
from agentctx.models.folder import ModelFolder
from agentctx.models.memory import Available
from agentctx.prompt import ModelInfo
from agentctx.spec import engines
from agentctx.spec.engines.modules import Device

BILLION = ModelInfo(
    "m", "", 24, 10**9, hidden_size=1024, n_heads=16, n_kv_heads=16, head_dim=64, vocab_size=1000, max_position=4096,
    tokenizer_digest="", architecture="llama",
)  # fmt: skip


class Known(LocalModel):
    info = BILLION  # type: ignore[assignment]


def model(said: list[str]) -> Known:
    return Known(ModelFolder("m", Path("m"), None), "torch", 1000, Path("cache"), said.append)


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> dict[str, int | None]:
    """Free bytes: of main memory, and of the GPU (None: there is none)."""
    free: dict[str, int | None] = {"main": 10**12, "gpu": None}
    monkeypatch.setattr("agentctx.models.memory.available", lambda: Available(free["main"], "a test"))

    def gpu_of(name: str) -> Device | None:
        return None if free["gpu"] is None else Device("cuda", "a GPU", "bfloat16", 2, free["gpu"])

    monkeypatch.setattr(engines, "gpu_of", gpu_of)
    return free


def test_main_memory_holds_float32(places: dict[str, int | None]) -> None:
    said: list[str] = []
    places["main"] = 6 * 10**9
    model(said)._require_memory(None, "the model", "torch")
    assert said == ["loading the model m: it needs 4.7 GB of memory, 6.0 GB are free"]
    places["main"] = 4 * 10**9
    with pytest.raises(NotEnoughMemory, match=r"needs 4\.7 GB of memory; 4\.0 GB are free \(a test\)"):
        model(said)._require_memory(None, "the model", "torch")


def test_a_gpu_holds_half_of_it_and_main_memory_does_not_count(places: dict[str, int | None]) -> None:
    said: list[str] = []
    places.update(main=10**6, gpu=3 * 10**9)
    model(said)._require_memory(None, "the model", "torch")
    assert said == ["loading the model m: it needs 2.6 GB of memory, 3.0 GB are free"]
    places["gpu"] = 2 * 10**9
    with pytest.raises(NotEnoughMemory, match=r"needs 2\.6 GB of memory; 2\.0 GB are free \(a GPU\)"):
        model(said)._require_memory(None, "the model", "torch")


@pytest.mark.parametrize("name", ["mlx", "openvino", "vllm", "reference"])
def test_engines_without_a_gpu_of_their_own_choice(name: str) -> None:
    assert engines.gpu_of(name) is None
    with pytest.raises(EngineUnavailable, match="no choice of devices"):
        engines.load_device(name)


def test_torch_on_a_cpu_has_none() -> None:
    torch = pytest.importorskip("torch")
    assert (engines.gpu_of("torch") is None) == (not torch.cuda.is_available())
