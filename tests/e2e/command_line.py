"""The program as tests call it: in this process, or in one of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOG = "fixtures/repos/leap_year/failure.log"
TEST = "tests/test_rules.py::test_1900_is_not_a_leap_year"
# What `almanac/grid.py` needs fits into the one and not into the other.
TIGHT = ("--focus", "almanac/grid.py", "--budget", "280")
ROOMY = ("--focus", "almanac/grid.py", "--budget", "9000")


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Done]


def agentctx(*args: str | Path | bytes, cwd: Path, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """Run the program in a process of its own."""
    return subprocess.run([sys.executable, "-m", "agentctx", *args], cwd=cwd, capture_output=True, check=False, **more)
