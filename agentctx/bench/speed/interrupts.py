"""SIGTERM while an event loop runs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def sigterm_like_sigint() -> Iterator[None]:
    """For the inside of `asyncio.run`: it cancels its main task on Ctrl-C, and raises KeyboardInterrupt when all is
    over. The command line's own handler of SIGTERM would raise within whichever task runs at that moment."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    before = signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)
