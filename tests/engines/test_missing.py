"""Engines whose packages aren't there say so, with the command that installs them."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(("name", "package"), [("mlx", "mlx")])
def test_an_engine_without_its_package_says_what_to_install(name: str, package: str) -> None:
    code = f"""
import sys; sys.modules[{package!r}] = None
from agentctx.cli.doctor import CHECKS
from agentctx.errors import EngineUnavailable
from agentctx.spec import engines
try: engines.load({name!r})
except EngineUnavailable as error: print(error.hint)
rows = [row for check in CHECKS if check.__name__ == "_engines" for row in check()]
print(*[(row.status, row.said.split(" not installed")[1]) for row in rows if row.said.startswith({name!r})])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    hint = f'pip install "agentctx[{name}]"'
    assert done.stdout.splitlines() == [hint, str(("warn", f": {hint}"))], done.stderr
