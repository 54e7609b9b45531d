"""What is known of an indexed file without its bytes. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class FileKey(Protocol):
    """What decides a file's syntax: a `FileEntry`, or a `SourceFile` with its bytes."""

    @property
    def path(self) -> str: ...

    @property
    def digest(self) -> str: ...

    @property
    def language(self) -> str | None: ...

    @property
    def is_test(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of the tree. `digest` is the SHA-256 of its bytes in hex."""

    path: str
    digest: str
    language: str | None
    is_test: bool
    n_bytes: int
