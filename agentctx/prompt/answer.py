"""What a model answers, and the edit that it asks for. Pure data."""

from __future__ import annotations

from dataclasses import dataclass

from agentctx.spans import ByteSpan


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer. `ids` is () where a server gave text; `counted` is then the number of tokens, as far as known."""

    text: str
    ids: tuple[int, ...]
    finish: str  # 'stop' | 'length'
    seconds: float
    counted: int | None = None

    @property
    def n_tokens(self) -> int:
        return len(self.ids) if self.counted is None else self.counted


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
