"""A lock between processes on one file. The system drops it when its holder dies, so it can't go stale."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agentctx.locks import try_lock

_POLL_SECONDS = 0.2


@contextmanager
def locked(path: Path, *, on_wait: Callable[[], None] | None = None) -> Iterator[bool]:
    """Hold the lock file `path` (created if absent); gives whether another process held it, so that something may have
    changed meanwhile. `on_wait` is called once then, before waiting."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        waited = not try_lock(descriptor)
        if waited:
            if on_wait is not None:
                on_wait()
            while not try_lock(descriptor):
                time.sleep(_POLL_SECONDS)
        yield waited
    finally:
        os.close(descriptor)  # closing releases the lock
