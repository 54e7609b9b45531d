"""Which Python runs the tests: the first that has pytest."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentctx.errors import UnavailableError

VARIABLE = "AGENTCTX_PYTHON"
_PROBE = "import importlib.util, sys; sys.exit(importlib.util.find_spec('pytest') is None)"
_PROBE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Interpreter:
    path: str
    source: str  # where it was found, for people


def find_python(root: Path, environment: Mapping[str, str]) -> Interpreter:
    """The Python for tests in `root`.

    Order: $AGENTCTX_PYTHON, the repository's .venv or venv, $VIRTUAL_ENV, python3 and python on PATH, our own.

    Raises:
        UnavailableError: none of them has pytest; $AGENTCTX_PYTHON that lacks it is not passed over.
    """
    tried = []
    for found in _candidates(root, environment):
        if found.path in tried:
            continue
        tried.append(found.path)
        if _has_pytest(found.path, environment):
            return found
        if found.source == f"${VARIABLE}":
            break
    raise UnavailableError(
        f"no Python with pytest for {root}; tried {', '.join(tried)}",
        hint=f"install pytest into the repository's .venv, or name a Python with {VARIABLE}=PATH, or use --check-cmd",
    )


def _candidates(root: Path, environment: Mapping[str, str]) -> Iterator[Interpreter]:
    named = environment.get(VARIABLE)
    if named:
        yield Interpreter(named, f"${VARIABLE}")
    folders = [(root / name, name) for name in (".venv", "venv")]
    active = environment.get("VIRTUAL_ENV")
    if active:
        folders.append((Path(active), "$VIRTUAL_ENV"))
    for folder, source in folders:
        for inner in ("bin/python", "Scripts/python.exe"):
            if (folder / inner).is_file():
                yield Interpreter(str(folder / inner), source)
    for name in ("python3", "python"):
        found = shutil.which(name, path=environment.get("PATH"))
        if found:
            yield Interpreter(found, "PATH")
    yield Interpreter(sys.executable, "agentctx's own")


def _has_pytest(python: str, environment: Mapping[str, str]) -> bool:
    with tempfile.TemporaryDirectory() as elsewhere:  # a `pytest` folder in the repository proves nothing
        try:
            done = subprocess.run(
                [python, "-c", _PROBE],
                cwd=elsewhere,
                env={**os.environ, **environment},
                capture_output=True,
                timeout=_PROBE_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
    return done.returncode == 0
