"""PHP: namespaces are declared, `use` brings names in, functions and constants fall back to the global namespace."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from agentctx.repo.resolvers.imported import Imported
from agentctx.repo.resolvers.rules import Rules, Space, in_order, words
from agentctx.source import FileSyntax, Import

if TYPE_CHECKING:
    from tree_sitter import Node

_MEMBERS = words(
    """
    add all append build call clear close count create current delete each execute fetch filter find first format
    get getCode getIterator getMessage getName getValue handle has insert isEmpty key keys last make map merge
    name next offsetGet parse push query read remove render replace reset run save send set size start stop
    toArray toString update valid value values with write
    """
)


class PhpRules(Rules):
    languages = frozenset({"php"})
    closed = True
    own_names = frozenset({"this"})
    super_names = frozenset({"parent"})
    type_names = frozenset({"self", "static"})
    constructors = frozenset({"__construct"})
    builtin_members = _MEMBERS
    global_names = True

    def __init__(self, files: Mapping[str, FileSyntax], configs: Mapping[str, bytes]) -> None:
        super().__init__(files, configs)
        self._packages: dict[str, list[str]] = {}
        self._visible: dict[str, Mapping[str, int]] = {}
        for path in sorted(files):
            self._packages.setdefault(files[path].package, []).append(path)
        self._global = {s.name for path in self._packages.get("", ()) for s in files[path].symbols}

    def spaces(self, item: Import) -> tuple[Space, ...]:
        if item.module.startswith("file:"):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(item.path), item.module[5:].lstrip("/")))
            return (Space((path,)),) if path in self.files else ()
        files = self._packages.get(item.module)
        if not item.module and item.name not in self._global:
            return ()  # a class or function of PHP itself
        return (Space(tuple(files)),) if files else ()

    def submodules(self, item: Import) -> tuple[Space, ...]:
        """`use A\\B;` may name a namespace, for `B\\C` later."""
        files = self._packages.get(f"{item.module}.{item.name}".strip("."))
        return (Space(tuple(files)),) if files else ()

    def visible(self, path: str) -> Mapping[str, int]:
        package = self.files[path].package
        if package not in self._visible:
            self._visible[package] = in_order(self._packages[package])
        return self._visible[package]

    def dotted(self, path: str, name: str) -> tuple[Space, ...]:
        files = self._packages.get(name)
        return (Space(tuple(files)),) if files else ()


def imports(statement: Node, data: bytes) -> Iterator[Imported]:
    """`use A\\B as C;`, `use A\\{B, C as D};`, `require __DIR__ . '/x.php';`"""
    if statement.type != "namespace_use_declaration":
        yield from _required(statement, data)
        return
    before = next((c for c in statement.named_children if c.type == "namespace_name"), None)
    prefix = _dotted(data, before) if before is not None else ""
    stack = list(reversed(statement.named_children))
    while stack:
        node = stack.pop()
        if node.type == "namespace_use_group":
            stack.extend(reversed(node.named_children))
        elif node.type == "namespace_use_clause":
            yield from _clause(node, data, prefix)


def _clause(node: Node, data: bytes, prefix: str) -> Iterator[Imported]:
    alias = node.child_by_field_name("alias")
    name = next((c for c in node.named_children if c != alias), None)
    if name is None:
        return
    whole = ".".join(part for part in (prefix, _dotted(data, name)) if part)
    module, _, last = whole.rpartition(".")
    yield Imported(module, last, _dotted(data, alias) if alias is not None else last)


def _required(statement: Node, data: bytes) -> Iterator[Imported]:
    stack = [statement]
    while stack:
        node = stack.pop()
        if node.type in ("string_content", "string_value"):
            yield Imported(f"file:{data[node.start_byte : node.end_byte].decode('utf-8', 'replace')}", "*", "")
            return
        stack.extend(reversed(node.named_children))


def _dotted(data: bytes, node: Node) -> str:
    return data[node.start_byte : node.end_byte].decode("utf-8", "replace").replace("\\", ".").strip(". ")
