"""Which engine runs a model when nobody said (`--engine auto`). Imports no engine."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass

from agentctx.prompt import ModelInfo
from agentctx.spec.engines import usable

AUTO = "auto"
WORTH_EXPORTING = 300_000_000  # parameters: below, torch prefills as fast, and decoding is short


@dataclass(frozen=True, slots=True)
class Choice:
    """`reason` is a sentence for the report."""

    engine: str
    reason: str


@dataclass(frozen=True, slots=True)
class Machine:
    system: str  # sys.platform
    processor: str  # platform.machine()


def this_machine() -> Machine:
    return Machine(sys.platform, platform.machine())


def choose(
    asked: str,
    info: ModelInfo,
    has_export: Callable[[str], bool],
    machine: Machine | None = None,
    installed: Callable[[str], bool] = usable,
) -> Choice:
    """The engine that was asked for; for AUTO the fastest that can run this model here as it is.

    mlx on Apple Silicon; OpenVINO on x86 CPUs for a model of more than 300 million parameters that was exported for it
    (an export has other weights, so it is made on request only); else torch.

    Args:
        has_export: whether there is a usable export of the model for an engine.
        installed: whether an engine's packages are there.
    """
    machine = machine or this_machine()
    if asked != AUTO:
        return Choice(asked, "--engine")
    if machine.system == "darwin" and machine.processor == "arm64" and installed("mlx"):
        return Choice("mlx", "Apple Silicon, mlx is installed")
    x86 = machine.processor.lower() in ("x86_64", "amd64")
    if x86 and info.n_params > WORTH_EXPORTING and installed("openvino") and has_export("openvino"):
        return Choice("openvino", f"{info.name} was exported for OpenVINO")
    return Choice("torch", "default")
