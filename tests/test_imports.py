"""Imports point down, and importing the package is cheap."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.trees import ROOT

HEAVY = (
    "torch",
    "transformers",
    "numpy",
    "tree_sitter",
    "pygls",
    "lsprotocol",
    "tokenizers",
    "click",
    "git",
    "sqlite3",
)


def test_the_layers_hold() -> None:
    command = [Path(sys.executable).parent / "lint-imports", "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_importing_the_package_loads_no_library() -> None:
    code = f"import agentctx, sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
