"""What features read: a frozen view of the session. The session makes a new one; nothing changes an old one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pygls.workspace import PositionCodec

from agentctx.lsp.convert import FilePositions, buffer_bytes, encode
from agentctx.lsp.job import OpenFile, Selected, TaskRequest
from agentctx.source import Reference
from agentctx.spans import ByteSpan


class State(StrEnum):
    """What the session is doing; the values are part of the protocol."""

    NO_TASK = "no-task"
    RUNNING = "running"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class View:
    """`selected` is the newest finished selection of this task; None before the first and after a failure.

    `number` grows with every change of `selected`.
    """

    root: Path
    state: State
    message: str
    task: TaskRequest
    pins: tuple[str, ...]
    open: Mapping[str, OpenFile]
    selected: Selected | None
    number: int

    def fresh(self, path: str) -> Selected | None:
        """The selection, if it has seen the file's text as it is now: in the editor, or the same bytes on disk."""
        selected, file = self.selected, self.open.get(path)
        if selected is None or file is None or selected.versions.get(path) == file.version:
            return selected
        seen = selected.data.get(path)
        if seen is None:  # a file that isn't indexed, or a new one that the running selection will see
            return None if self.state is State.RUNNING else selected
        return selected if buffer_bytes(file.text, seen) == seen else None

    def positions(self, selected: Selected, path: str, codec: PositionCodec) -> FilePositions | None:
        """Positions in a file as the selection read it; None for a file that it did not read."""
        data = selected.data.get(path)
        return FilePositions(data, codec) if data is not None else None


def name_span(reference: Reference, data: bytes) -> ByteSpan:
    """The name alone: the reference of an import is its whole statement, with the name near its end."""
    start, end = reference.span.start, reference.span.end
    name = rb"(?<![\w.\x80-\xff])" + re.escape(encode(reference.name)) + rb"(?![\w\x80-\xff])"
    found = list(re.finditer(name, data[start:end]))
    return ByteSpan(start + found[-1].start(), start + found[-1].end()) if found else reference.span
