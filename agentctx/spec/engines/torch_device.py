"""Where torch runs models here, and in what it holds them."""

from __future__ import annotations

import re
from typing import Any

import torch

from agentctx.errors import EngineUnavailable, UsageError
from agentctx.spec.engines.cpus import multiplies_bfloat16
from agentctx.spec.engines.modules import Device
from agentctx.spec.engines.wishes import AUTO, NO_WISH, Wish

CPU, CUDA = "cpu", "cuda"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_GPU = re.compile(r"cuda(?::(\d+))?")


def device(wish: Wish = NO_WISH, *, drafts: bool = False) -> Device:
    """See `modules.DeviceModule`. By itself: the first GPU in bfloat16, or the CPU in float32; but a drafter in
    bfloat16 where the CPU multiplies that."""
    where = _where(wish)
    name = _dtype(wish, where, drafts=drafts)
    on_gpu = where != CPU
    return Device(
        kind=where,
        name=torch.cuda.get_device_name(where) if on_gpu else "CPU",
        dtype=name,
        width=torch.finfo(DTYPES[name]).bits // 8,
        free_bytes=int(torch.cuda.mem_get_info(where)[0]) if on_gpu else None,
    )


def torch_dtype(place: Device) -> Any:
    return DTYPES[place.dtype]


def peak_device_bytes() -> int | None:
    """The most memory of all GPUs that tensors have taken so far; None where there is none."""
    if not torch.cuda.is_available():
        return None
    return sum(int(torch.cuda.max_memory_allocated(number)) for number in range(torch.cuda.device_count()))


def _where(wish: Wish) -> str:
    if wish.device == CPU:
        return CPU
    n_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if wish.device == AUTO:
        return f"{CUDA}:0" if n_gpus else CPU
    asked = _GPU.fullmatch(wish.device)
    if asked is None:
        raise UsageError(f"--{wish.option}device {wish.device}: choose auto, cpu, cuda or cuda:N")
    number = int(asked[1] or 0)
    if number >= n_gpus:
        have = f"torch {torch.__version__} sees {n_gpus} CUDA GPUs" if n_gpus else "torch sees no CUDA GPU here"
        raise EngineUnavailable(f"--{wish.option}device {wish.device}: {have}")
    return f"{CUDA}:{number}"


def _dtype(wish: Wish, where: str, *, drafts: bool) -> str:
    if wish.dtype != AUTO:
        if wish.dtype not in DTYPES:
            raise UsageError(f"--{wish.option}dtype {wish.dtype}: choose auto, {' or '.join(DTYPES)}")
        return wish.dtype
    return "bfloat16" if where != CPU or (drafts and multiplies_bfloat16()) else "float32"
