"""Members by their name alone, for receivers that nobody can tell. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from agentctx.repo.bindings import Bindings
from agentctx.repo.builtin_members import BUILTIN_MEMBERS, OBJECT_MEMBERS
from agentctx.repo.name_tables import EXTERNAL, Binding
from agentctx.source import Resolution, SymbolKind

MAX_CANDIDATES = 8
_MEMBERS = (SymbolKind.METHOD, SymbolKind.FIELD)


class Guesses:
    """Knows all methods and fields of the repository."""

    def __init__(self, bindings: Bindings) -> None:
        self._bindings = bindings
        self._symbols = bindings.symbols
        self._by_name = self._index()
        self._known: dict[tuple[str, str], Binding] = {}

    def _index(self) -> dict[str, list[str]]:
        by_name: dict[str, list[str]] = {}
        for table in self._bindings.tables.values():
            for parent, names in table.members.items():
                if parent is not None and self._symbols[parent].kind is SymbolKind.CLASS:
                    for name, ids in names.items():
                        by_name.setdefault(name, []).extend(i for i in ids if self._symbols[i].kind in _MEMBERS)
        return by_name

    def member(self, path: str, name: str) -> Binding:
        """RESOLVED where one class has the name and no builtin type does; EXTERNAL where none has; else AMBIGUOUS."""
        key = (path, name)
        if key not in self._known:
            self._known[key] = self._member(path, name)
        return self._known[key]

    def _member(self, path: str, name: str) -> Binding:
        tables = self._bindings.tables
        candidates = self._by_name.get(name, [])
        if not tables[path].file.is_test:
            # Code doesn't call what only tests define.
            candidates = [id for id in candidates if not tables[self._symbols[id].path].file.is_test]
        if not candidates or name in OBJECT_MEMBERS:
            return EXTERNAL
        owners = {self._symbols[id].parent for id in candidates}
        is_certain = len(owners) == 1 and name not in BUILTIN_MEMBERS
        return Binding(Resolution.RESOLVED if is_certain else Resolution.AMBIGUOUS, self.nearest(candidates, path))

    def nearest(self, ids: Iterable[str], path: str) -> tuple[str, ...]:
        """At most `MAX_CANDIDATES`: of the same file, then of the same folder, then others; sorted."""
        folder = path.rpartition("/")[0]

        def distance(id: str) -> tuple[bool, bool, str]:
            there = self._symbols[id].path
            return there != path, there.rpartition("/")[0] != folder, id

        return tuple(sorted(sorted(ids, key=distance)[:MAX_CANDIDATES]))
