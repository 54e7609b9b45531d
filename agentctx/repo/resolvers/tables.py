"""Definitions of one language family by name. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agentctx.source import FileSyntax, Import, Symbol, SymbolKind

_MEMBERS = (SymbolKind.METHOD, SymbolKind.FIELD)
Ids = tuple[str, ...]
UNNAMED = ("test", "suite", "fixture")  # definitions that no code can name


class Tables:
    """`by_file[path][qualname]`, `by_qualname[qualname]`, `members[name]`, `names`: ids in file order."""

    def __init__(self, files: Mapping[str, FileSyntax], *, open_enums: bool = False) -> None:
        self.files = files
        self._open_enums = open_enums
        self.symbols: dict[str, Symbol] = {}
        self.by_file: dict[str, dict[str, Ids]] = {}
        self.imports: dict[str, dict[str, Import]] = {}
        self.stars: dict[str, tuple[Import, ...]] = {}
        self.names: set[str] = set()  # of all top-level definitions
        by_qualname: dict[str, list[str]] = {}
        members: dict[str, list[str]] = {}
        for path in sorted(files):
            self._add(files[path], by_qualname, members)
        self.by_qualname = {name: tuple(ids) for name, ids in by_qualname.items()}
        self.members = {name: tuple(ids) for name, ids in members.items()}

    def _add(self, file: FileSyntax, by_qualname: dict[str, list[str]], members: dict[str, list[str]]) -> None:
        table: dict[str, list[str]] = {}
        for symbol in file.symbols:
            self.symbols[symbol.id] = symbol
            if symbol.form in UNNAMED and not (symbol.form == "fixture" and file.language == "ruby"):  # `let(:x)`
                continue
            table.setdefault(symbol.qualname, []).append(symbol.id)
            if self._open_enums and symbol.kind is SymbolKind.FIELD:
                self._add_open(symbol, table)
            if symbol.kind in _MEMBERS:
                members.setdefault(symbol.name, []).append(symbol.id)
            if "." not in symbol.qualname or symbol.kind is SymbolKind.CLASS:
                self.names.add(symbol.name)
        self.by_file[file.path] = {name: tuple(ids) for name, ids in table.items()}
        for name, ids in self.by_file[file.path].items():
            by_qualname.setdefault(name, []).extend(ids)
        self.imports[file.path] = {item.alias: item for item in reversed(file.imports) if item.alias}
        self.stars[file.path] = tuple(item for item in file.imports if item.name == "*")

    def _add_open(self, entry: Symbol, table: dict[str, list[str]]) -> None:
        """An enum's entry is also one of what is around the enum."""
        enum = self.symbols.get(entry.parent or "")
        if enum is not None and enum.form == "enum" and "enum class" not in enum.signature:
            outer = enum.qualname.rpartition(".")[0]
            table.setdefault(f"{outer}.{entry.name}" if outer else entry.name, []).append(entry.id)

    def classes(self, ids: Iterable[str]) -> Ids:
        """Those of the ids that are types."""
        return tuple(id for id in ids if self.symbols[id].kind is SymbolKind.CLASS)
