"""Examines many files in worker processes. Results come in no fixed order; what they are depends on the files alone.

Own processes and pipes, not `multiprocessing`: a grammar that crashes takes one worker with it and names one file,
and nothing is asked of the main module. Each worker has a thread here that feeds it and reads its answers.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Generator, Sequence
from pathlib import Path

from agentctx.repo.examine import Examined
from agentctx.repo.frames import HELLO, read_frame

CHUNK_FILES = 16
SECONDS_PER_FILE = 60.0
SECONDS_TO_START = 60.0  # a machine may be busy
_POLL = 1.0
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from agentctx.repo.worker import main; main(*sys.argv[2:])"
)
TRIES = 2  # the system may kill a process for reasons of its own


def n_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class WorkerFailed(Exception):
    """Workers can't be started, the message says why. What was not answered is left to the caller."""


def examine_in_processes(
    root: Path, paths: Sequence[str], cache: Path | None, n_processes: int, *, start: str = _START
) -> Generator[Examined, None, None]:
    """One `Examined` per path. A file on which a worker dies, or takes too long, is one with a reason.

    Close the iterator to end all workers at once. `start`: the Python program that a worker runs.

    Raises:
        WorkerFailed: a worker died before it was given a file.
    """
    command = [sys.executable, "-c", start, json.dumps(sys.path), str(root), str(cache or "")]
    chunks = deque(paths[at : at + CHUNK_FILES] for at in range(0, len(paths), CHUNK_FILES))
    results: queue.SimpleQueue[Examined | Exception | None] = queue.SimpleQueue()
    workers = [_Worker(command, chunks, results) for _ in range(max(1, min(n_processes, len(chunks))))]
    left = len(paths)
    try:
        while left:
            try:
                found = results.get(timeout=_POLL)
            except queue.Empty:
                for worker in workers:
                    worker.end_if_stuck()
                continue
            if isinstance(found, Exception):
                raise WorkerFailed(str(found)) from found
            if found is not None:
                left -= 1
                yield found
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """One process after another, until no chunk is left."""

    def __init__(
        self,
        command: Sequence[str],
        chunks: deque[Sequence[str]],
        results: queue.SimpleQueue[Examined | Exception | None],
    ) -> None:
        self._command = command
        self._chunks = chunks
        self._results = results
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()  # between a start and a stop
        self._stopped = False
        self._since = time.monotonic()
        self._is_stuck = False
        self._thread = threading.Thread(target=self._run, name="agentctx-worker", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()
        self._thread.join()

    def end_if_stuck(self) -> None:
        if time.monotonic() - self._since > SECONDS_PER_FILE:
            with self._lock:
                if self._process is not None:
                    self._is_stuck = True
                    self._process.kill()

    def _run(self) -> None:
        try:
            while not self._stopped:
                try:
                    chunk = self._chunks.popleft()
                except IndexError:
                    break
                self._work_off(deque(chunk))
        except Exception as error:  # noqa: BLE001 - raised again by the thread that waits for results
            self._results.put(error)
        finally:
            self._close()

    def _work_off(self, chunk: deque[str]) -> None:
        """All files of a chunk. When the process dies, the file that it was at is the one to blame."""
        failures = 0
        while chunk and (process := self._started()) is not None:
            self._since = time.monotonic()
            self._ask(process, chunk)
            while chunk and (found := self._answer(process)) is not None:
                self._since = time.monotonic()
                failures = 0
                chunk.popleft()
                self._results.put(found)
            if not chunk or self._stopped:
                return
            failures += 1
            reason = self._blame(process)
            if failures == TRIES:
                failures = 0
                self._results.put(Examined(chunk.popleft(), reason))

    def _started(self) -> subprocess.Popen[bytes] | None:
        """The running process, or a new one; None once all was stopped."""
        with self._lock:
            if self._process is not None or self._stopped:
                return None if self._stopped else self._process
            self._is_stuck = False
            self._since = time.monotonic() + SECONDS_TO_START
            process = self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        assert process.stdout is not None
        if process.stdout.read(len(HELLO)) != HELLO and not self._stopped:
            raise WorkerFailed(f"a worker process did not come up (exit status {process.wait()})")
        return process

    def _ask(self, process: subprocess.Popen[bytes], chunk: Sequence[str]) -> None:
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(list(chunk)).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            return  # it is dead; so says its answer

    def _answer(self, process: subprocess.Popen[bytes]) -> Examined | None:
        assert process.stdout is not None
        return read_frame(process.stdout)  # type: ignore[arg-type] # a BufferedReader

    def _blame(self, process: subprocess.Popen[bytes]) -> str:
        status, stuck = process.wait(), self._is_stuck
        self._close()
        if stuck:
            return f"the parser took more than {SECONDS_PER_FILE:.0f} seconds on it"
        return (
            f"the parser crashed on it (signal {-status})"
            if status < 0
            else f"the parser crashed on it (status {status})"
        )

    def _close(self) -> None:
        """Ends the process and closes its pipes."""
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.communicate()
