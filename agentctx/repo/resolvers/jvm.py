"""Java (Kotlin and Scala add to it): packages are declared, names of the own package are visible, members too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from agentctx.repo.resolvers.imported import Imported
from agentctx.repo.resolvers.rules import Rules, Space, in_order, words
from agentctx.source import FileSyntax, Import, Symbol, SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

_MEMBERS = words(
    """
    add addAll append apply build clear clone close compareTo contains containsKey copy create equals filter find
    first flatMap forEach format get getClass getKey getMessage getName getOrDefault getValue hashCode indexOf
    isEmpty iterator join keySet last length map max min name next of ordinal parse poll pop print printf println
    push put read remove replace reset run set size sort split start stop stream substring test toArray toList
    asInstanceOf isInstanceOf use let with toString trim type valueOf values write
    """
)


class JvmRules(Rules):
    languages = frozenset({"java", "kotlin", "scala"})
    bare_members = True
    guesses_names = True
    passthrough = words("Companion also apply")
    constructors = frozenset({"constructor", "apply", "this"})
    builtin_members = _MEMBERS

    def __init__(self, files: Mapping[str, FileSyntax], configs: Mapping[str, bytes]) -> None:
        super().__init__(files, configs)
        packages: dict[str, list[str]] = {}
        for path in sorted(files):
            packages.setdefault(files[path].package, []).append(path)
        self._packages = {name: tuple(paths) for name, paths in packages.items()}
        self._outer = {outer for name in packages for outer in _outer(name)}
        self._extensions = {id: owner for file in files.values() for id, owner in _extensions(file)}
        self._visible: dict[str, Mapping[str, int]] = {}

    def spaces(self, item: Import) -> tuple[Space, ...]:
        return self._space(".".join(part for part in item.module.split(".") if part != "Companion"))

    def _space(self, dotted: str) -> tuple[Space, ...]:
        """The package that is the longest beginning of a dotted name, and what comes after it as types inside."""
        parts = dotted.split(".")
        for end in range(len(parts), 0, -1):
            files = self._packages.get(".".join(parts[:end]))
            if files:
                return (Space(files, ".".join(parts[end:])),)
        return ()

    def submodules(self, item: Import) -> tuple[Space, ...]:
        module = item.module
        if not module and item.level == -1 and item.path:
            module = self.files[item.path].package
        return self._package(f"{module}.{item.name}") if module else ()

    def _package(self, dotted: str) -> tuple[Space, ...]:
        """A package; where only others lie inside of it, its name alone."""
        if dotted in self._packages:
            return (Space(self._packages[dotted]),)
        return (Space((), dotted),) if dotted in self._outer else ()

    def detached(self, space: Space, name: str, symbol: Symbol) -> bool:
        """Extension functions: imported by their name, whatever they extend."""
        return not space.prefix and symbol.id in self._extensions and symbol.path in space.files

    def reads(self, symbol: Symbol) -> bool:
        """Scala's methods without parameters."""
        return symbol.path.endswith(".scala") and "(" not in symbol.signature

    def extends(self, symbol: Symbol) -> str | None:
        return self._extensions.get(symbol.id)

    def visible(self, path: str) -> Mapping[str, int]:
        file = self.files[path]
        is_chain = file.language == "scala"  # `package a.b` and then `package c`: what is in a.b is visible, too
        key = f"{file.package}{'.*' if is_chain else ''}"
        if key not in self._visible:
            packages = [file.package, *reversed(_outer(file.package)[:-1])] if is_chain else [file.package]
            self._visible[key] = in_order(
                path for name in dict.fromkeys(packages) for path in self._packages.get(name, ())
            )
        return self._visible[key]

    def dotted(self, path: str, name: str) -> tuple[Space, ...]:
        """The top of a fully qualified name: known only as a beginning of packages."""
        return self._package(name)


def _extensions(file: FileSyntax) -> Iterator[tuple[str, str]]:
    """(id, type) of the members that stand outside of the type that they belong to."""
    symbols = {symbol.id: symbol for symbol in file.symbols} if file.language in ("kotlin", "scala") else {}
    for symbol in symbols.values():
        owner = symbol.qualname.rpartition(".")[0]
        if owner and symbol.kind is SymbolKind.METHOD:
            holder = symbols.get(symbol.parent or "")
            if holder is None or not holder.span.start <= symbol.span.start < holder.span.end:
                yield symbol.id, owner.rpartition(".")[2]


def _outer(package: str) -> list[str]:
    """`a.b.c` -> ['a', 'a.b', 'a.b.c']"""
    parts = package.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)] if package else []


def java_imports(statement: Node, data: bytes) -> Iterator[Imported]:
    """`import a.b.C;`, `import static a.b.C.m;`, `import a.b.*;`"""
    name = next((n for n in statement.named_children if n.type in ("scoped_identifier", "identifier")), None)
    if name is None:
        return
    dotted = "".join(data[name.start_byte : name.end_byte].decode("utf-8", "replace").split())
    if any(child.type == "asterisk" for child in statement.named_children):
        yield Imported(dotted, "*", "")
        return
    module, _, last = dotted.rpartition(".")
    yield Imported(module, last, last)


def kotlin_imports(statement: Node, data: bytes) -> Iterator[Imported]:
    """`import a.b.C`, `import a.b.C as D`, `import a.b.*`"""
    name = next((n for n in statement.named_children if n.type == "qualified_identifier"), None)
    if name is None:
        return
    dotted = _dotted(name, data)
    alias = next((n for n in statement.named_children if n.type == "identifier"), None)
    if any(child.type == "*" for child in statement.children):
        yield Imported(dotted, "*", "")
        return
    module, _, last = dotted.rpartition(".")
    yield Imported(module, last, _dotted(alias, data) if alias is not None else last)


def scala_imports(statement: Node, data: bytes) -> Iterator[Imported]:
    """`import a.b.{C => D, E}, f._` and Scala 3's `import a.b.{C as D}`, `import f.*`"""
    path: list[str] = []
    for child in [*statement.children, None]:
        if child is None or child.type == ",":
            if path:
                yield Imported(".".join(path[:-1]), path[-1], path[-1])
            path = []
        elif child.type in (
            "namespace_selectors",
            "namespace_wildcard",
            "as_renamed_identifier",
            "arrow_renamed_identifier",
        ):
            yield from _selected(child, data, ".".join(path))
            path = []
        elif child.is_named and not child.is_extra:
            path += _dotted(child, data).split(".")


def _selected(node: Node, data: bytes, module: str) -> Iterator[Imported]:
    for one in node.named_children if node.type == "namespace_selectors" else [node]:
        if one.type == "namespace_wildcard" or one.type.endswith("wildcard"):
            yield Imported(module, "*", "")
        elif one.type in ("arrow_renamed_identifier", "as_renamed_identifier"):
            name, alias = one.child_by_field_name("name"), one.child_by_field_name("alias")
            if name is not None and alias is not None:
                yield Imported(module, _dotted(name, data), _dotted(alias, data))
        elif not one.is_extra:
            yield Imported(module, _dotted(one, data), _dotted(one, data))


def _dotted(node: Node, data: bytes) -> str:
    return "".join(data[node.start_byte : node.end_byte].decode("utf-8", "replace").replace("`", "").split())
