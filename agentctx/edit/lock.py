"""One edit at a time: a file lock that the system releases when its owner dies."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentctx.errors import ConflictError, EditError
from agentctx.locks import try_lock

_POLL_SECONDS = 0.05


@contextmanager
def locked(path: Path, *, wait_seconds: float = 0.0) -> Iterator[None]:
    """Hold the lock at `path`.

    Raises:
        ConflictError: another process holds it; its number is named.
        EditError: the lock file can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise EditError(f"can't write the lock {path}: {error.strerror}") from error
    try:
        until = time.monotonic() + wait_seconds
        while not try_lock(descriptor):
            if time.monotonic() >= until:
                owner = os.pread(descriptor, 64, 0).decode("ascii", "replace").strip() if os.name == "posix" else "?"
                raise ConflictError(
                    f"another agentctx edit is running in this repository (process {owner})",
                    hint="wait until it has ended",
                )
            time.sleep(_POLL_SECONDS)
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, str(os.getpid()).encode())
        yield
    finally:
        os.close(descriptor)
