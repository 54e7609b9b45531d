"""C#: namespaces are declared anywhere, `using` opens them for a file, types may be partial."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from agentctx.repo.resolvers.imported import Imported
from agentctx.repo.resolvers.rules import Rules, Space, in_order, words
from agentctx.source import FileSyntax, Import, Symbol, SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

_EXTENDED = re.compile(r"\(\s*this\s+(?:[\w.]+\.)?(\w+)")
_MEMBERS = words(
    """
    Add AddRange Any All Append Clear Close Compare CompareTo Contains ContainsKey Copy Count Create Dispose
    Equals First FirstOrDefault Format Get GetEnumerator GetHashCode GetType Id Insert Invoke Join Key Last Length
    Max Message Min Name Next Parse Read Remove Replace Run Select Set Single Split Start Stop Substring Sum
    ToArray ToList ToLower ToString ToUpper Trim TryGetValue Type Value Values Where Write WriteLine
    """
)


class CSharpRules(Rules):
    languages = frozenset({"csharp"})
    bare_members = True
    super_names = frozenset({"base"})
    builtin_members = _MEMBERS
    passthrough = words("ConfigureAwait Result")

    def __init__(self, files: Mapping[str, FileSyntax], configs: Mapping[str, bytes]) -> None:
        super().__init__(files, configs)
        spaces: dict[str, dict[str, list[str]]] = {}  # full name -> what names have before them -> files
        for path in sorted(files):
            for name, prefix in dict.fromkeys(_namespaces(files[path])):
                spaces.setdefault(name, {}).setdefault(prefix, []).append(path)
        self._spaces = {
            name: [Space(tuple(paths), prefix) for prefix, paths in sorted(by_prefix.items())]
            for name, by_prefix in spaces.items()
        }
        self._own = {path: tuple(sorted({name for name, _ in _namespaces(files[path])})) for path in files}
        self._visible: dict[tuple[str, ...], Mapping[str, int]] = {}

    def spaces(self, item: Import) -> tuple[Space, ...]:
        """A namespace; for `using static` and aliases a type inside of one."""
        dotted = item.module
        parts = dotted.split(".")
        for end in range(len(parts), 0, -1):
            found = self._spaces.get(".".join(parts[:end]))
            if found:
                rest = ".".join(parts[end:])
                return tuple(Space(s.files, f"{s.prefix}.{rest}".strip(".") if rest else s.prefix) for s in found)
        return ()

    def visible(self, path: str) -> Mapping[str, int]:
        """Files of the own namespaces and of those around them."""
        own = self._own[path]
        if own not in self._visible:
            names = {outer for name in own for outer in _around(name)}
            found = {file for name in names for space in self._spaces.get(name, ()) for file in space.files}
            self._visible[own] = in_order(sorted(found))
        return self._visible[own]

    def extends(self, symbol: Symbol) -> str | None:
        found = _EXTENDED.search(symbol.signature)
        return found[1] if found is not None else None

    def prefixes(self, path: str) -> Sequence[str]:
        return _around(self.files[path].package)

    def same_class(self, one: str, other: str) -> bool:
        return one == other or not set(self._own[one]).isdisjoint(self._own[other])

    def dotted(self, path: str, name: str) -> tuple[Space, ...]:
        return tuple(self._spaces.get(name, ())[:1])


def _around(namespace: str) -> list[str]:
    """`A.B` -> ['A.B', 'A', '']: a namespace and those around it, the global one last."""
    parts = namespace.split(".") if namespace else []
    return [".".join(parts[:end]) for end in range(len(parts), -1, -1)]


def _namespaces(file: FileSyntax) -> Iterator[tuple[str, str]]:
    """(full name, qualified name inside of the file) of the namespaces that a file adds to."""
    yield file.package, ""
    for symbol in file.symbols:
        if symbol.kind is SymbolKind.CLASS and symbol.form == "namespace":
            yield f"{file.package}.{symbol.qualname}".strip("."), symbol.qualname


def imports(statement: Node, data: bytes) -> Iterator[Imported]:
    """`using A.B;`, `using static A.B;`, `using X = A.B;`"""
    name = statement.child_by_field_name("name")
    target = next((c for c in reversed(statement.named_children) if c.type in _NAMES and c != name), None)
    if target is None:
        return
    dotted = "".join(data[target.start_byte : target.end_byte].decode("utf-8", "replace").split())
    dotted = dotted.removeprefix("global::")
    if name is not None:
        module, _, last = dotted.rpartition(".")
        yield Imported(module, last, data[name.start_byte : name.end_byte].decode("utf-8", "replace"))
    else:
        yield Imported(dotted, "*", "")


_NAMES = ("qualified_name", "identifier", "alias_qualified_name", "generic_name")
