"""Syntax of single files of a survey: from what was just parsed, from memory, from the cache, else parsed now."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agentctx.repo.cache import Stored, key_of
from agentctx.repo.catalog_row import catalog_row
from agentctx.repo.index import is_of
from agentctx.repo.parse import parse
from agentctx.repo.syntax_codec import decode, encode
from agentctx.source import FileSyntax, SourceFile

if TYPE_CHECKING:
    from agentctx.repo.store import IndexMemory, IndexStore
    from agentctx.repo.survey import Survey


class Loader:
    """Loads syntax on demand and remembers it. `n_parsed`: files that had to be parsed here."""

    def __init__(self, survey: Survey, store: IndexStore | None, memory: IndexMemory | None) -> None:
        self.loaded: dict[str, FileSyntax] = {}
        self.n_parsed = 0
        self.notes: list[str] = []
        self._survey = survey
        self._store = store
        self._memory = memory.syntax if memory is not None else {}

    def load(self, paths: Iterable[str]) -> list[FileSyntax]:
        """The syntax of `paths`, in their order.

        Raises:
            KeyError: one isn't in the survey.
            ConflictError: a file must be parsed, and was changed since the survey.
        """
        wanted = list(paths)
        left = [path for path in dict.fromkeys(wanted) if path not in self.loaded and not self._at_hand(path)]
        if left and self._store is not None:
            found = self._store.syntax.get([self._survey.entries[path] for path in left])
            self.loaded.update(found.syntax)
            self.notes += found.notes
        self._parse([path for path in left if path not in self.loaded])
        return [self.loaded[path] for path in wanted]

    def _at_hand(self, path: str) -> bool:
        """Takes it from what was just parsed, or from memory."""
        entry, made = self._survey.entries[path], self._survey.made.get(path)
        if isinstance(made, bytes):
            made = decode(made, entry)
        old = self._memory.get(path)
        if made is None and old is not None and is_of(old, entry):
            made = old
        if made is not None:
            self.loaded[path] = made
        return made is not None

    def _parse(self, paths: list[str]) -> None:
        stored = []
        for path in paths:
            entry = self._survey.entries[path]
            data = self._survey.data[path]
            made = self.loaded[path] = parse(SourceFile(path, data, entry.digest, entry.language, entry.is_test))
            self.n_parsed += 1
            if self._store is not None:
                stored.append(Stored(key_of(entry), encode(made), catalog_row(data, made.symbols)))
        if self._store is not None:
            self.notes += self._store.syntax.put(stored)
