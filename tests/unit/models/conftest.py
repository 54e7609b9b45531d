"""Fixtures of the model tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentctx.models.convert import convert
from agentctx.settings import cache_root
from tests.unit.models.tiny_models import Tiny, make_tiny


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """In 11 parts, so that 10 and 11 sort before 2 as text."""
    return make_tiny(tmp_path_factory.mktemp("tiny"), 11)


@pytest.fixture(scope="session")
def tiny_folder(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model, converted. Read-only for tests."""
    folder = tmp_path_factory.mktemp("converted") / "tiny"
    folder.mkdir()
    convert(tiny.gguf, folder, name="tiny", sha256=tiny.model.sha256)
    return folder


@pytest.fixture(scope="session")
def user_cache() -> Path:
    """The user's real cache, for tests on models that were fetched there."""
    return cache_root(os.environ)
