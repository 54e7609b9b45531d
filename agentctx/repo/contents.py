"""The bytes of indexed files, read when they are asked for. What was read once stays."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from agentctx.errors import ConflictError
from agentctx.repo.entry import FileEntry


class Contents(Mapping[str, bytes]):
    """By path. `held`: bytes that are not those on disk (unsaved buffers)."""

    def __init__(self, root: Path, entries: Mapping[str, FileEntry], held: Mapping[str, bytes]) -> None:
        self._root = root
        self._entries = entries
        self._read = dict(held)

    def only(self, entries: Mapping[str, FileEntry]) -> Contents:
        """The same, of fewer files."""
        return Contents(self._root, entries, {path: data for path, data in self._read.items() if path in entries})

    def __getitem__(self, path: str) -> bytes:
        """The bytes that were indexed, no others.

        Raises:
            KeyError: the file is not indexed.
            ConflictError: it was changed, or removed, since it was indexed.
        """
        known = self._read.get(path)
        if known is None:
            known = self._read[path] = self._load(self._entries[path])
        return known

    def _load(self, entry: FileEntry) -> bytes:
        hint = "run the command again"
        try:
            data = (self._root / entry.path).read_bytes()
        except OSError as error:
            gone = f"{entry.path} can't be read any more, it was when the index was made: {error.strerror or error}"
            raise ConflictError(gone, hint=hint) from error
        if hashlib.sha256(data).hexdigest() != entry.digest:
            raise ConflictError(f"{entry.path} was changed while it was being worked on", hint=hint)
        return data

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, path: object) -> bool:
        return path in self._entries
