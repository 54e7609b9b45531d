"""Fixtures for the tests of edits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from edit_repos import Tree


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tree]:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    root = tmp_path / "repo"
    root.mkdir()
    made = Tree(root, tmp_path / "cache")
    made.git("init", "-q", "-b", "main")
    yield made
    left = sorted((made.cache / "worktrees").glob("*/*")) if made.cache.exists() else []
    assert left == [], "a worktree was left behind"
