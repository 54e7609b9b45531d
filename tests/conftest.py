"""Fixtures of all tests: a world of their own, copies of the fixture projects, and the embedded model."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentctx import settings
from agentctx.errors import ModelUnavailable
from agentctx.models import store
from agentctx.models.folder import ModelFolder
from tests.fake_server import FakeServer, serve
from tests.trees import META, REPOS, Repo

KEPT = ("AGENTCTX_UPDATE_CASES",)
_REAL_CACHE = settings.cache_root(os.environ)  # before any test's environment is made

# What a shell runs in the background ignores SIGINT, and so would every process of ours that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_world(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees the user's settings, cache, git configuration or home; returns the home."""
    for name in sorted(os.environ):
        ours = name.startswith(("AGENTCTX_", "GIT_", "OPENAI_")) or name.lower().endswith("_proxy")
        if ours and name not in KEPT:
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    for name, folder in (
        ("HOME", "."),
        ("XDG_CACHE_HOME", "xdg/cache"),
        ("XDG_CONFIG_HOME", "xdg/config"),
        ("XDG_DATA_HOME", "xdg/data"),
        ("XDG_STATE_HOME", "xdg/state"),
        ("AGENTCTX_CACHE_DIR", "cache"),
        ("AGENTCTX_CONFIG_DIR", "config"),
    ):
        monkeypatch.setenv(name, str(home / folder))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    monkeypatch.setenv("NO_COLOR", "1")
    return home


@pytest.fixture
def repo(tmp_path: Path) -> Callable[[str], Repo]:
    """`repo(NAME)`: the fixture project NAME, copied without its solution and committed."""

    def make(name: str) -> Repo:
        root = tmp_path / name
        shutil.copytree(REPOS / name, root, ignore=shutil.ignore_patterns(*META, "__pycache__"))
        made = Repo(root)
        made.git("init", "-q", "-b", "main")
        made.commit()
        return made

    return make


@pytest.fixture
def empty(tmp_path: Path) -> Repo:
    """A new git repository without a commit, in a folder whose name has a blank."""
    root = tmp_path / "a tree"
    root.mkdir()
    made = Repo(root)
    made.git("init", "-q", "-b", "main")
    return made


@pytest.fixture(scope="session")
def model_folder() -> ModelFolder:
    """SmolLM2-135M from the user's cache; the test is skipped, visibly, where it hasn't been fetched."""
    try:
        return store.resolve("smollm2", _REAL_CACHE)
    except ModelUnavailable as error:
        pytest.skip(f"{error.message}: {error.hint}")


@pytest.fixture
def server() -> Iterator[FakeServer]:
    """A server that speaks chat completions; what it says is set by the test."""
    pytest.importorskip("openai")
    yield from serve(FakeServer())
