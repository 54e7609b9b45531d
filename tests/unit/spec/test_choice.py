"""Which engine runs a model when nobody said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentctx.spec.engines.choice import AUTO, Choice, Machine, choose
from agentctx.spec.engines.reference import tiny_engine

SMALL = replace(tiny_engine().info, name="small", n_params=135_000_000)
LARGE = replace(SMALL, name="large", n_params=1_500_000_000)
LINUX, WINDOWS = Machine("linux", "x86_64"), Machine("win32", "AMD64")
MAC, ARM = Machine("darwin", "arm64"), Machine("linux", "aarch64")
ALL = frozenset({"torch", "mlx", "openvino"})


@pytest.mark.parametrize(
    ("info", "machine", "exported", "installed", "engine"),
    [
        pytest.param(LARGE, LINUX, True, ALL, "openvino", id="a large model that was exported"),
        pytest.param(LARGE, WINDOWS, True, ALL, "openvino", id="Windows"),
        pytest.param(LARGE, LINUX, False, ALL, "torch", id="no export"),
        pytest.param(LARGE, LINUX, True, frozenset({"torch"}), "torch", id="OpenVINO is not installed"),
        pytest.param(SMALL, LINUX, True, ALL, "torch", id="a small model"),
        pytest.param(LARGE, ARM, True, ALL, "torch", id="no x86"),
        pytest.param(SMALL, MAC, False, ALL, "mlx", id="Apple Silicon"),
        pytest.param(LARGE, MAC, True, frozenset({"torch", "openvino"}), "torch", id="Apple Silicon without mlx"),
        pytest.param(SMALL, Machine("darwin", "x86_64"), False, ALL, "torch", id="a Mac of before"),
    ],
)
def test_the_engine_by_default(
    info: object, machine: Machine, exported: bool, installed: frozenset[str], engine: str
) -> None:
    found = choose(AUTO, info, lambda name: exported and name == "openvino", machine, installed.__contains__)  # type: ignore[arg-type]
    assert found.engine == engine
    assert found.reason != "--engine"


def test_what_was_asked_for_is_taken() -> None:
    for engine in ("torch", "openvino", "nonsense"):
        assert choose(engine, LARGE, lambda _: True, MAC, ALL.__contains__) == Choice(engine, "--engine")
