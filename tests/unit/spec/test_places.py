"""Where models run and what they are held in: what is understood, refused, and chosen where nobody said."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from agentctx.config import Dtype, RunOptions
from agentctx.errors import EngineUnavailable, UsageError
from agentctx.spec import engines
from agentctx.spec.engines.cpus import multiplies_bfloat16
from agentctx.spec.engines.wishes import NO_WISHES, Wish, wishes_of

torch = pytest.importorskip("torch")

from agentctx.spec.engines import torch_device  # noqa: E402


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """As many as the test says."""
    found = SimpleNamespace(n=0)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: found.n > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: found.n)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda where: f"GPU {where}")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda where: (10**9, 2 * 10**9))
    return found


def multiplies(monkeypatch: pytest.MonkeyPatch, *, it_does: bool) -> None:
    monkeypatch.setattr(torch_device, "multiplies_bfloat16", lambda: it_does)


@pytest.mark.parametrize(
    ("flags", "it_does"),
    [
        ("fpu sse2 avx512f avx512_bf16 avx512_vnni", True),
        ("fpu amx_bf16 amx_int8", True),
        ("fpu avx2 avx512f avx512_vnni", False),
        ("fpu not_avx512_bf16_really", False),
    ],
)
def test_a_cpu_that_multiplies_bfloat16(tmp_path: Path, flags: str, it_does: bool) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(f"processor\t: 0\nmodel name\t: avx512_bf16 in a name\nflags\t\t: {flags}\n")
    assert multiplies_bfloat16(file) is it_does


def test_a_cpu_of_which_nothing_is_known(tmp_path: Path) -> None:
    assert not multiplies_bfloat16(tmp_path / "missing")
    (tmp_path / "arm").write_text("processor\t: 0\nFeatures\t: fp asimd bf16\n")
    assert not multiplies_bfloat16(tmp_path / "arm")  # not measured


def test_without_a_wish_and_without_a_gpu(gpus: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    multiplies(monkeypatch, it_does=True)
    assert torch_device.device().form == "float32 on cpu"
    assert torch_device.device(drafts=True).form == "bfloat16 on cpu"
    assert (torch_device.device(drafts=True).width, torch_device.device().width) == (2, 4)
    multiplies(monkeypatch, it_does=False)
    assert torch_device.device(drafts=True).form == "float32 on cpu"


def test_without_a_wish_on_a_gpu(gpus: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus.n = 2
    multiplies(monkeypatch, it_does=False)
    for drafts in (False, True):
        place = torch_device.device(drafts=drafts)
        assert (place.form, place.free_bytes, place.name) == ("bfloat16 on cuda:0", 10**9, "GPU cuda:0")


def test_what_is_wished_for_holds(gpus: SimpleNamespace) -> None:
    gpus.n = 2
    assert torch_device.device(Wish("cuda:1", "float32")).form == "float32 on cuda:1"
    assert torch_device.device(Wish("cuda"), drafts=True).form == "bfloat16 on cuda:0"
    on_cpu = torch_device.device(Wish("cpu", "bfloat16"))
    assert (on_cpu.form, on_cpu.free_bytes) == ("bfloat16 on cpu", None)
    assert torch_device.device(Wish("cpu", "float32"), drafts=True).form == "float32 on cpu"


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "cuda:-1", "mps", "CPU", ""])
def test_no_such_kind_of_device(gpus: SimpleNamespace, name: str) -> None:
    gpus.n = 1
    with pytest.raises(UsageError, match=f"--drafter-device {name}: choose auto, cpu, cuda or cuda:N"):
        torch_device.device(Wish(name, option="drafter-"))


def test_no_such_device_here(gpus: SimpleNamespace) -> None:
    with pytest.raises(EngineUnavailable, match="--device cuda: torch sees no CUDA GPU here"):
        torch_device.device(Wish("cuda"))
    gpus.n = 1
    with pytest.raises(EngineUnavailable, match=r"--device cuda:1: torch .* sees 1 CUDA GPUs"):
        torch_device.device(Wish("cuda:1"))


def test_a_width_that_it_can_not_hold() -> None:
    with pytest.raises(UsageError, match="--dtype float16: choose auto, float32 or bfloat16"):
        torch_device.device(Wish("cpu", "float16"))


@pytest.mark.parametrize("name", ["mlx", "openvino", "vllm", "reference", "openai"])
def test_engines_without_a_choice_refuse_a_wish(name: str) -> None:
    assert engines.place_of(name, Wish()) is None
    with pytest.raises(EngineUnavailable, match=f"--dtype bfloat16: engine {name} has no choice"):
        engines.place_of(name, Wish(dtype="bfloat16"))
    with pytest.raises(EngineUnavailable, match="no choice of devices"):
        engines.load_device(name)


def test_an_export_has_its_own_width() -> None:
    with pytest.raises(EngineUnavailable) as found:
        engines.place_of("openvino", Wish("cuda"))
    assert "--engine openvino --weights float32" in (found.value.hint or "")


def test_the_wishes_of_options() -> None:
    assert wishes_of(RunOptions()) == NO_WISHES
    options = RunOptions(device="cuda:1", drafter_device="cpu", drafter_dtype=Dtype.FLOAT32)
    wishes = wishes_of(options)
    assert wishes.main.said == "--device cuda:1"
    assert wishes.drafter.said == "--drafter-device cpu --drafter-dtype float32"
    assert Wish().said == ""
