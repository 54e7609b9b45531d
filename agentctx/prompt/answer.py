"""What a model answers, and the edit that it asks for. Pure data."""

from __future__ import annotations

from dataclasses import dataclass

from agentctx.spans import ByteSpan


@dataclass(frozen=True, slots=True)
class Completion:
    text: str
    ids: tuple[int, ...]
    finish: str  # 'stop' | 'length'
    seconds: float


@dataclass(frozen=True, slots=True)
class Hunk:
    """Replace bytes `span` of the file's old content by `new`."""

    span: ByteSpan
    new: bytes


@dataclass(frozen=True, slots=True)
class FileEdit:
    """Edits of one file. `base_digest` is the SHA-256 of the content that the hunks refer to ('' = new file)."""

    path: str
    base_digest: str
    hunks: tuple[Hunk, ...]


@dataclass(frozen=True, slots=True)
class EditPatch:
    files: tuple[FileEdit, ...]
    notes: tuple[str, ...] = ()  # e.g. "matched up to whitespace"
