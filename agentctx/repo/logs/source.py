"""Where a log's bytes come from: memory, or a file that is read piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agentctx.errors import TaskError

LogSource = bytes | Path
PART = 1 << 20


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
        raise TaskError(f"can't read the log '{name}': {error.strerror}") from error
