"""An exclusive lock on an open file, between processes. The system drops it when its holder dies."""

from __future__ import annotations

import os
import sys

_FAR = 1 << 20  # Windows locks bytes: one far behind the text, which others may read

if sys.platform == "win32":
    import msvcrt

    def try_lock(descriptor: int) -> bool:
        """Whether the lock was taken; it is held until the descriptor is closed."""
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def try_lock(descriptor: int) -> bool:
        """Whether the lock was taken; it is held until the descriptor is closed."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
