"""Logs as files and streams: what is held, what is said."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentctx.errors import TaskError
from agentctx.repo.logs import read_logs
from agentctx.repo.logsource import IN_MEMORY, open_log, read_stream

NOISE = b"2024-05-01T12:00:00.1234567Z INFO app.web:77 handled request 12345 in 3.4 ms with status=200\n"
FAILURE = b"=== FAILURES ===\n___ test_a ___\ntests/test_a.py:3: in test_a\n    assert f()\nE   assert 1\n"


def test_a_small_log_is_read_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(FAILURE)
    assert open_log(tmp_path / "a.log", "a.log") == FAILURE
    assert read_stream(io.BytesIO(FAILURE)) == FAILURE


@pytest.mark.parametrize("name", ["gone.log", "folder", "a.log/x"])
def test_what_can_not_be_read_is_said(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "a.log").write_bytes(FAILURE)
    with pytest.raises(TaskError, match=f"can't read the log '{name}': "):
        open_log(tmp_path / name, name)


def test_a_file_that_is_gone_when_it_is_read(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="can't read the log 'x': No such file"):
        read_logs([("x", tmp_path / "gone.log")], [])


def test_a_long_stream_becomes_a_file(tmp_path: Path) -> None:
    data = NOISE * (IN_MEMORY // len(NOISE) + 10) + FAILURE
    source = read_stream(io.BytesIO(data), tmp_path)
    assert isinstance(source, Path)
    assert source.parent == tmp_path
    assert source.read_bytes() == data


def test_a_full_disk_leaves_no_file(tmp_path: Path) -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() > IN_MEMORY:
                raise OSError(28, os.strerror(28))
            return super().read(size)

    with pytest.raises(TaskError, match="No space left"):
        read_stream(Failing(NOISE * (IN_MEMORY // len(NOISE) + 10)), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_large_log_is_streamed_in_bounded_memory(tmp_path: Path) -> None:
    """The peak of a process of its own grows by far less than the log's size."""
    file = tmp_path / "big.log"
    with file.open("wb") as stream:
        for _ in range(25):
            stream.write(NOISE * 10_000)
        stream.write(FAILURE)
    size = file.stat().st_size
    code = (
        "import resource, sys; from pathlib import Path; from agentctx.repo.logs import read_logs\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak(); found = read_logs([('big', Path(sys.argv[1]))], ['tests/test_a.py'])\n"
        "print(peak() - before, found.failing[0].id)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, check=True, text=True)
    grown, test = done.stdout.split()
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(grown) * unit < size * 0.7, (grown, size)
    assert test == "tests/test_a.py::test_a"
