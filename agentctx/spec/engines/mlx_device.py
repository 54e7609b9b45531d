"""What mlx computes on here, and which models that is too slow for. Imports mlx, but not mlx-lm."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version

import mlx.core as mx

from agentctx.errors import EngineUnavailable
from agentctx.prompt import ModelInfo

FORCE = "AGENTCTX_FORCE_MLX"
# The Linux wheel's matrix products come from a reference BLAS: 7 tokens/s with 135 million parameters, torch does 280.
SLOW_ABOVE = 50_000_000


def on_gpu() -> bool:
    return bool(mx.default_device().type == mx.DeviceType.gpu)


def is_slow() -> bool:
    """On macOS the CPU has Apple's own BLAS."""
    return not on_gpu() and sys.platform == "linux"


def refuse_slow(info: ModelInfo) -> None:
    """Raises EngineUnavailable for a model of real size on a CPU under Linux, unless it is forced."""
    if is_slow() and info.n_params > SLOW_ABOVE and os.environ.get(FORCE) != "1":
        raise EngineUnavailable(
            f"{info.name} has {info.n_params / 1e6:,.0f} million parameters, and mlx has no GPU here: its Linux wheel "
            "computes on a CPU about 40 times slower than torch",
            hint=f"use --engine torch here, or set {FORCE}=1 to run it all the same",
        )


def describe() -> str:
    """One sentence for `agentctx doctor`."""
    libraries = f"mlx {version('mlx')} and mlx-lm {version('mlx-lm')}"
    if on_gpu():
        return f"{libraries} on a GPU ({_gpu_name()})"
    if not is_slow():
        return f"{libraries} on a CPU: mlx sees no GPU"
    return (
        f"{libraries} on a CPU: its wheel for Linux is slow there, models of more than {SLOW_ABOVE // 10**6} million "
        f"parameters are refused unless {FORCE}=1"
    )


def _gpu_name() -> str:
    if not mx.metal.is_available():
        return "CUDA"
    return str(mx.device_info().get("device_name", "Apple"))
