"""Every engine on the same tiny folders."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from engine_models import (
    CLOSE,
    MODELS,
    SHAPES,
    TOLERANCES,
    UP_TO_A_CONSTANT,
    Oracle,
    build,
    describe,
    log_softmax,
    oracle_of,
    prepare,
)

from agentctx.spec import engines
from agentctx.spec.engines.byte_tokenizer import ByteTokenizer
from agentctx.spec.protocols import ChatFrame, Drafter, Engine

# `make test-mlx` and its siblings name the engine that they are for, and fail where it can't be imported.
UNDER_TEST = os.environ.get("AGENTCTX_TEST_ENGINES", "reference,torch").split(",")

if os.environ.get("AGENTCTX_TEST_VLLM_V2"):
    importlib.import_module("vllm_v2")


@pytest.fixture(scope="session", params=sorted(MODELS))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    shape = {key: value for name in UNDER_TEST for key, value in SHAPES.get(name, {}).items()}
    return build(tmp_path_factory.mktemp(request.param), **{**MODELS[request.param], **shape})


@pytest.fixture(scope="session")
def oracle(folder: Path) -> Oracle:
    return oracle_of(folder)


@pytest.fixture(scope="session", params=UNDER_TEST)
def engine_name(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if "AGENTCTX_TEST_ENGINES" not in os.environ:
        for package in engines.ENGINES[name].needs:
            pytest.importorskip(package)
    return name


@pytest.fixture(scope="session")
def close(engine_name: str) -> dict[str, float]:
    """How near an engine's logits must be to the oracle's: arguments of `assert_allclose`."""
    return TOLERANCES.get(engine_name, CLOSE)


@pytest.fixture(scope="session")
def same_logits(engine_name: str, close: dict[str, float]) -> Callable[..., None]:
    """`same_logits(found, expected)`: as near as this engine must be; with `exact`, equal where it can be."""

    def same(found: np.ndarray, expected: np.ndarray, *, exact: bool = False) -> None:
        assert found.shape == expected.shape
        if engine_name in UP_TO_A_CONSTANT:
            np.testing.assert_allclose(log_softmax(found), log_softmax(expected), **close)
        elif exact:
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, **close)

    return same


@pytest.fixture(scope="session")
def engine(engine_name: str, folder: Path) -> Engine:
    prepare(engine_name, folder)
    return engines.load(engine_name).load_engine(
        folder, "tiny", tokenizer=ByteTokenizer(), chat=ChatFrame(), info=describe(folder)
    )


@pytest.fixture(scope="session")
def make_drafter(engine_name: str, folder: Path) -> Callable[..., Drafter]:
    if engines.drafter_engine(engine_name) != engine_name:
        pytest.skip(f"{engine_name} runs no drafter: {engines.drafter_engine(engine_name)} does")

    def make(n_layers: int | None = None) -> Drafter:
        return engines.load_drafting(engine_name).load_drafter(
            folder, "tiny", tokenizer=ByteTokenizer(), info=describe(folder), n_layers=n_layers
        )

    return make
