"""Where torch runs models here, and in what it holds them."""

from __future__ import annotations

from typing import Any

import torch

from agentctx.spec.engines.modules import Device

CUDA = "cuda"


def choose_device() -> str:
    return CUDA if torch.cuda.is_available() else "cpu"


def dtype_on(device: str) -> Any:
    """What weights and keys are held in."""
    return torch.bfloat16 if device.startswith(CUDA) else torch.float32


def device() -> Device:
    where = choose_device()
    dtype = dtype_on(where)
    on_gpu = where == CUDA
    return Device(
        kind=where,
        name=torch.cuda.get_device_name() if on_gpu else "CPU",
        dtype=str(dtype).removeprefix("torch."),
        width=torch.finfo(dtype).bits // 8,
        free_bytes=int(torch.cuda.mem_get_info()[0]) if on_gpu else None,
    )


def peak_device_bytes() -> int | None:
    """The most memory of the GPU that tensors have taken so far; None on a CPU."""
    return int(torch.cuda.max_memory_allocated()) if choose_device() == CUDA else None
