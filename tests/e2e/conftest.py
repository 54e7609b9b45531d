"""The program, and the repository of the fixtures that most tests run it on."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from agentctx.cli.main import invoke
from tests.e2e.command_line import LOG, Cli, Done
from tests.trees import ROOT, Repo


@pytest.fixture
def cli(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command in this process: `cli(*ARGS, cwd=FOLDER, stdin=BYTES)`."""

    def run(*args: str | Path, cwd: Path | None = None, stdin: bytes = b"") -> Done:
        with monkeypatch.context() as patch:
            if cwd is not None:
                patch.chdir(cwd)
            patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            code = invoke([str(arg) for arg in args])
        out, err = capsysbinary.readouterr()
        return Done(code, out.decode(), err.decode())

    return run


@pytest.fixture
def leap(repo: Callable[[str], Repo]) -> Repo:
    return repo("leap_year")


@pytest.fixture
def log() -> Path:
    return ROOT / LOG
