"""Where a log's bytes come from: memory, or a file that is read piece by piece. Not pure: IO."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from agentctx.errors import TaskError

LogSource = bytes | Path
PART = 1 << 20
IN_MEMORY = 8 << 20  # bytes of a log up to which it is read at once


def open_log(file: Path, name: str) -> LogSource:
    """A log to give to `read_logs`: its bytes, or the file where it is large; then it is read when it is used.

    Args:
        name: The log as the user wrote it, for messages.

    Raises:
        TaskError: it isn't there, is a folder, or can't be read.
    """
    try:
        status = file.stat()
        with file.open("rb") as stream:
            large = stat.S_ISREG(status.st_mode) and status.st_size > IN_MEMORY
            return file.absolute() if large else stream.read()
    except OSError as error:
        raise _unreadable(name, error) from error


def read_stream(stream: BinaryIO, folder: Path | None = None) -> LogSource:
    """A stream's bytes; where there are many, a file in `folder` (default: the system's for temporary files) that
    holds them, which the caller removes.

    Raises:
        TaskError: the stream or the file fails.
    """
    try:
        head = stream.read(IN_MEMORY + 1)
        if len(head) <= IN_MEMORY:
            return head
        number, path = tempfile.mkstemp(prefix="agentctx-log-", dir=folder)
        try:
            with os.fdopen(number, "wb") as file:
                while head:
                    file.write(head)
                    head = stream.read(PART)
        except OSError:
            Path(path).unlink(missing_ok=True)
            raise
        return Path(path)
    except OSError as error:
        raise _unreadable("-", error) from error


def read_parts(name: str, source: LogSource) -> Iterator[bytes]:
    """The log in parts of a megabyte.

    Raises:
        TaskError: the file can't be read.
    """
    if isinstance(source, bytes):
        yield from (source[at : at + PART] for at in range(0, len(source), PART))
        return
    try:
        with source.open("rb") as file:
            while part := file.read(PART):
                yield part
    except OSError as error:
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: OSError) -> TaskError:
    hint = {
        FileNotFoundError: "give a file, or - to read standard input",
        IsADirectoryError: "give the file in it",
    }.get(type(error))
    return TaskError(f"can't read the log '{name}': {error.strerror}", hint=hint)
