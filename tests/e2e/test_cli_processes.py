"""The program as a process: what it imports, signals, pipes, and faults."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.command_line import Cli
from tests.trees import Repo

HEAVY = ("torch", "transformers", "numpy", "tree_sitter", "pygls", "lsprotocol", "tokenizers", "rich", "git", "sqlite3")


@pytest.mark.parametrize(
    ("code", "banned"),
    [
        ("import agentctx", (*HEAVY, "click")),
        ("from agentctx.cli.main import invoke; invoke(['-h'])", HEAVY),
        ("from agentctx.cli.main import invoke; invoke(['select', '-h'])", ("torch", "transformers", "tree_sitter")),
        (
            "from agentctx.cli.main import invoke; assert invoke(['select', 'x', '--drafter', 'none']) == 0",
            ("torch", "transformers", "safetensors", "gguf", "pygls", "lsprotocol", "rich", "httpx"),
        ),
        (
            "from agentctx.cli.main import invoke; assert invoke(['check', '--staged']) == 0",
            ("torch", "transformers", "safetensors", "gguf", "pygls", "lsprotocol", "rich", "tokenizers"),
        ),
    ],
    ids=["import", "help", "select-help", "select", "check"],
)
def test_what_is_imported(leap: Repo, code: str, banned: tuple[str, ...]) -> None:
    end = f"; import sys; print([name for name in {banned!r} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code + end], cwd=leap.root, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


def test_a_reader_that_goes_away(leap: Repo, log: Path) -> None:
    """As with `| head -1`."""
    command = [sys.executable, "-m", "agentctx", "pack", "x", "--log", str(log), "--budget", "20000"]
    with subprocess.Popen(command, cwd=leap.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        err = process.stderr.read()
        assert process.wait(30) == 0
    assert b"Traceback" not in err
    assert b"BrokenPipe" not in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(leap: Repo, tmp_path: Path, own_world: Path, number: signal.Signals) -> None:
    """While it reads the log: nothing is written and the exit code is 130."""
    fifo = tmp_path / "log"
    os.mkfifo(fifo)
    command = [sys.executable, "-m", "agentctx", "select", "x", "--log", str(fifo)]
    before = sorted(leap.root.rglob("*"))
    with subprocess.Popen(command, cwd=leap.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        writer = os.open(fifo, os.O_WRONLY)  # returns when the process has opened it, too
        process.send_signal(number)
        try:
            out, err = process.communicate(timeout=20)
        finally:
            process.kill()  # else leaving the block would wait for ever
            os.close(writer)
    assert process.returncode == 130, err
    assert err.strip() == b"agentctx: interrupted; nothing was left half done"
    assert out == b""
    assert sorted(leap.root.rglob("*")) == before
    assert not (own_world / "cache" / "logs").exists()


def test_a_bug_is_written_down(cli: Cli, leap: Repo, own_world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import click

    from agentctx.cli import select

    @click.command()
    def broken() -> None:
        raise RuntimeError("the impossible happened")

    monkeypatch.setattr(select, "select", broken)
    done = cli("select", cwd=leap.root)
    assert done.code == 70
    assert "agentctx: a bug: RuntimeError: the impossible happened" in done.err
    (file,) = (own_world / "cache" / "logs").iterdir()
    assert f"the details are in {file}" in done.err
    text = file.read_text("utf-8")
    assert "the impossible happened" in text
    assert "Traceback" in text
    assert "Traceback" not in done.err


def test_a_bug_without_a_place_to_write_it_down(
    cli: Cli, leap: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import click

    from agentctx.cli import select

    @click.command()
    def broken() -> None:
        raise RuntimeError("the impossible happened")

    monkeypatch.setattr(select, "select", broken)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AGENTCTX_CACHE_DIR", str(tmp_path / "file" / "cache"))
    done = cli("select", cwd=leap.root)
    assert done.code == 70
    assert "no log could be written" in done.err
    assert "Traceback" in done.err


def test_a_cache_that_cant_be_written(cli: Cli, leap: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is a help, not a need."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AGENTCTX_CACHE_DIR", str(tmp_path / "file" / "cache"))
    done = cli("select", "x", "--format", "json", cwd=leap.root)
    assert done.code == 0, done.err
    assert any("cache" in finding["message"] for finding in done.json["findings"])
    doctor = cli("doctor", "--format", "json", cwd=leap.root).json
    assert {row["name"]: row["status"] for row in doctor["rows"]}["cache"] == "warn"
