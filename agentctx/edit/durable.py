"""Writing files so that a crash leaves the old bytes or the new ones."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path`; mode 0600. A crash may leave `<name>.part` beside it."""
    part = path.with_name(path.name + ".part")
    write_synced(part, data)
    os.replace(part, path)
    sync_folder(path.parent)


def write_synced(path: Path, data: bytes, mode: int = 0o600) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), mode)
    with open(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def sync_folder(path: Path) -> None:
    """Make renames in `path` last (Windows has no such call and needs none)."""
    if sys.platform != "win32":
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
