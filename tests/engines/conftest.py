"""Every engine on the same tiny folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from engine_models import MODELS, Oracle, build, describe, oracle_of

from agentctx.spec import engines
from agentctx.spec.engines.byte_tokenizer import ByteTokenizer
from agentctx.spec.protocols import ChatFrame, Drafter, Engine


@pytest.fixture(scope="session", params=sorted(MODELS))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp(request.param), **MODELS[request.param])


@pytest.fixture(scope="session")
def oracle(folder: Path) -> Oracle:
    return oracle_of(folder)


@pytest.fixture(scope="session", params=["reference", "torch"])
def engine_name(request: pytest.FixtureRequest) -> str:
    if request.param == "torch":
        pytest.importorskip("torch")
    return str(request.param)


@pytest.fixture(scope="session")
def engine(engine_name: str, folder: Path) -> Engine:
    return engines.load(engine_name).load_engine(
        folder, "tiny", tokenizer=ByteTokenizer(), chat=ChatFrame(), info=describe(folder)
    )


@pytest.fixture(scope="session")
def make_drafter(engine_name: str, folder: Path) -> Callable[..., Drafter]:
    def make(n_layers: int | None = None) -> Drafter:
        return engines.load(engine_name).load_drafter(
            folder, "tiny", tokenizer=ByteTokenizer(), info=describe(folder), n_layers=n_layers
        )

    return make
