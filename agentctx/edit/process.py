"""Run one command to its end, its timeout or an interrupt; none of its children stays behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_GRACE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Finished:
    """`exit_code` is None after a timeout, negative for a signal. `output`: stdout and stderr, the last bytes."""

    exit_code: int | None
    seconds: float
    output: bytes


def run_command(command: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float, keep: int) -> Finished:
    """Run `command` in its own process group, without stdin; keep the last `keep` bytes of what it says.

    Raises:
        OSError: the command can't be started.
    """
    started = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = _start(command, cwd, env, output)
        try:
            code: int | None = process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = None
        finally:  # also on Ctrl-C; and children that outlive a normal end
            _end_group(process)
        return Finished(code, time.monotonic() - started, _tail(output, keep))


def _start(command: Sequence[str], cwd: Path, env: Mapping[str, str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=sys.platform != "win32",
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )


def _tail(output: IO[bytes], keep: int) -> bytes:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - keep))
    return output.read()


if sys.platform == "win32":

    def _end_group(process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            subprocess.run(["taskkill", "/F", "/T", "/PID", str(process.pid)], capture_output=True, check=False)
        process.wait()
else:

    def _end_group(process: subprocess.Popen[bytes]) -> None:
        """SIGTERM, a moment to clean up, SIGKILL; to the whole group."""
        alive = process.poll() is None
        if alive and _signal_group(process.pid, signal.SIGTERM):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_SECONDS)
        _signal_group(process.pid, signal.SIGKILL)
        process.wait()

    def _signal_group(group: int, number: int) -> bool:
        try:
            os.killpg(group, number)
        except (ProcessLookupError, PermissionError):  # gone; macOS says EPERM for a group of zombies
            return False
        return True
