"""Definitions of one language family by name. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agentctx.source import FileSyntax, Import, Symbol, SymbolKind

_MEMBERS = (SymbolKind.METHOD, SymbolKind.FIELD)
Ids = tuple[str, ...]


class Tables:
    """`by_file[path][qualname]`, `by_qualname[qualname]`, `members[name]`, `names`: ids in file order."""

    def __init__(self, files: Mapping[str, FileSyntax]) -> None:
        self.files = files
        self.symbols: dict[str, Symbol] = {}
        self.by_file: dict[str, dict[str, Ids]] = {}
        self.by_qualname: dict[str, Ids] = {}
        self.members: dict[str, Ids] = {}
        self.imports: dict[str, dict[str, Import]] = {}
        self.stars: dict[str, tuple[Import, ...]] = {}
        self.names: set[str] = set()  # of all top-level definitions
        for path in sorted(files):
            self._add(files[path])

    def _add(self, file: FileSyntax) -> None:
        table: dict[str, list[str]] = {}
        for symbol in file.symbols:
            self.symbols[symbol.id] = symbol
            table.setdefault(symbol.qualname, []).append(symbol.id)
            if symbol.kind in _MEMBERS:
                self.members[symbol.name] = (*self.members.get(symbol.name, ()), symbol.id)
            if "." not in symbol.qualname or symbol.kind is SymbolKind.CLASS:
                self.names.add(symbol.name)
        self.by_file[file.path] = {name: tuple(ids) for name, ids in table.items()}
        for name, ids in self.by_file[file.path].items():
            self.by_qualname[name] = (*self.by_qualname.get(name, ()), *ids)
        self.imports[file.path] = {item.alias: item for item in reversed(file.imports) if item.alias}
        self.stars[file.path] = tuple(item for item in file.imports if item.name == "*")

    def classes(self, ids: Iterable[str]) -> Ids:
        """Those of the ids that are types."""
        return tuple(id for id in ids if self.symbols[id].kind is SymbolKind.CLASS)
