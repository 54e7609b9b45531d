"""Rust: crates and modules by where files lie, `use` trees, `impl` blocks anywhere in the crate."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentctx.repo.resolvers.imported import Imported
from agentctx.repo.resolvers.rules import Rules, Space, words
from agentctx.source import FileSyntax, Import, Symbol, SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

_NAME = re.compile(rb'^\[package\][^\[]*?^name\s*=\s*"([^"]+)"', re.MULTILINE | re.DOTALL)
_LIB = re.compile(rb'^\[lib\][^\[]*?^name\s*=\s*"([^"]+)"', re.MULTILINE | re.DOTALL)
_OWN_CRATES = ("src/bin", "tests", "examples", "benches")  # folders whose files are crates of their own
_BUILTINS = words(
    """
    Box Clone Copy Debug Default Drop Eq Err Fn FnMut FnOnce From Hash Into Iterator None Ok Option Ord PartialEq
    PartialOrd Result Send Some String Sync ToOwned ToString Vec assert assert_eq assert_ne bool cfg char dbg
    debug_assert drop eprintln f32 f64 format i128 i16 i32 i64 i8 isize matches panic print println std str todo
    u128 u16 u32 u64 u8 unimplemented unreachable usize vec write writeln core alloc
    """
)
_MEMBERS = words(
    """
    and_then is_some_and is_none_or is_ok_and get_or_insert_with
    append as_bytes as_ptr as_slice as_str build bytes chain chars cloned close cmp collect contains
    copied count default drain entry enumerate eq err extend filter filter_map find first flat_map flush fmt fold
    from from_str get get_mut insert into is_empty is_err is_none is_ok is_some iter iter_mut join keys last len
    lines map map_err max min name new next ok ok_or or_else parse path peek pop position push push_str read
    remove replace rev rfind run skip sort split start_with starts_with sum take then to_string to_vec trim
    truncate try_from try_into values with_capacity write zip
    """
)
_PASS = words(
    """
    unwrap expect clone as_ref as_mut borrow borrow_mut lock read write to_owned unwrap_or unwrap_or_default
    unwrap_or_else deref deref_mut into_inner take await cloned copied iter into_iter by_ref
    """
)


@dataclass(frozen=True, slots=True)
class _Crate:
    """`folder` is that of Cargo.toml; `root` tells the crates of one package apart (the library, each test)."""

    folder: str
    root: str


class RustRules(Rules):
    languages = frozenset({"rust"})
    closed = True
    config_names = frozenset({"Cargo.toml"})
    own_names = frozenset({"self"})
    super_names = frozenset[str]()
    type_names = frozenset({"Self"})
    constructors = frozenset[str]()
    builtins = _BUILTINS
    builtin_members = _MEMBERS
    passthrough = _PASS

    def __init__(self, files: Mapping[str, FileSyntax], configs: Mapping[str, bytes]) -> None:
        super().__init__(files, configs)
        self._packages = _packages(configs)
        self._folders = sorted({folder for folder, _ in self._packages}, key=lambda f: (-len(f), f))
        self._symbols: dict[str, dict[str, Symbol]] = {}
        self._types: dict[str, frozenset[str]] = {}
        self._open: set[tuple[str, str]] = set()
        self._old = {p.rpartition("/")[0] for p, data in configs.items() if b"edition" not in data}
        self._declared = _declared(files)
        self._place = {path: self._find_place(path) for path in files}
        self._modules: dict[tuple[_Crate, tuple[str, ...]], list[str]] = {}
        self._visible: dict[str, dict[str, int]] = {}
        for path in sorted(files):
            crate, module = self._place[path]
            self._modules.setdefault((crate, module), []).append(path)
            shared = crate.root.rpartition("/")[0]
            if shared in _OWN_CRATES and not module:  # `crate` in the modules that test files share
                self._modules.setdefault((_Crate(crate.folder, shared), ()), []).append(path)
            self._visible.setdefault(crate.folder, {})[path] = len(self._visible.get(crate.folder, ()))

    def _find_place(self, path: str) -> tuple[_Crate, tuple[str, ...]]:
        """(crate, module path) of a file."""
        folder = next((f for f in self._folders if not f or path.startswith(f"{f}/")), "")
        inside = path[len(folder) + 1 :] if folder else path
        for own in _OWN_CRATES:
            if inside.startswith(f"{own}/"):
                parts = _module_parts(inside[len(own) + 1 :])
                is_root = len(parts) == 1 and not path.endswith("/mod.rs") and path not in self._declared
                return (_Crate(folder, f"{own}/{parts[0]}"), ()) if is_root else (_Crate(folder, own), parts)
        return _Crate(folder, "src"), _module_parts(inside.removeprefix("src/"))

    def spaces(self, item: Import) -> tuple[Space, ...]:
        found = self._descend(item.path, self._inline(item), item.module.split(".") if item.module else [])
        return (found,) if found is not None else ()

    def submodules(self, item: Import) -> tuple[Space, ...]:
        if item.name is None:
            return ()
        if item.level == -1:  # inside of a module that is known already
            place = self._place.get(item.path)
            found = self._child(place, item.module, item.name) if place is not None else None
        else:
            parts = [*(item.module.split(".") if item.module else []), item.name]
            found = self._descend(item.path, self._inline(item), parts)
        return (found,) if found is not None and not found.prefix else ()

    def dotted(self, path: str, name: str) -> tuple[Space, ...]:
        found = self._descend(path, (), [name])
        if name == "super":  # in an inline module that is the file itself, else what is above it
            return (Space(tuple(dict.fromkeys((path, *(found.files if found is not None else ()))))),)
        return (found,) if found is not None and not found.prefix else ()

    def visible(self, path: str) -> Mapping[str, int]:
        """All of the package, for macros: where their text stands before a use is enough."""
        return self._visible[self._place[path][0].folder]

    def sees(self, symbol: Symbol) -> bool:
        return symbol.signature.startswith("macro_rules!")

    def same_class(self, one: str, other: str) -> bool:
        return self._place[one][0].folder == self._place[other][0].folder

    def _inline(self, item: Import) -> tuple[str, ...]:
        """The inline modules around an import."""
        if item.scope is None:
            return ()
        if item.path not in self._symbols:
            self._symbols[item.path] = {s.id: s for s in self.files[item.path].symbols}
        symbols = self._symbols[item.path]
        at = symbols.get(item.scope or "")
        while at is not None and not (at.kind is SymbolKind.CLASS and at.form == "namespace"):
            at = symbols.get(at.parent or "")
        return tuple(at.qualname.split(".")) if at is not None else ()

    def _descend(self, path: str, inline: tuple[str, ...], parts: list[str]) -> Space | None:
        crate, module = self._place[path]
        start: Space | None = Space((path,), ".".join(inline))
        for at, part in enumerate(parts):
            if start is None:
                return None
            if at == 0 and part == "crate":
                start = self._module(crate, ())
            elif part in ("self", "mod") and at == 0:
                continue
            elif part == "super":
                start = self._above(start)
            elif at == 0:
                start = self._child((crate, module), ".".join(inline), part) or self._first(path, part)
            else:
                inside = self._place[start.files[0]] if start.files else None
                start = self._child(inside, start.prefix, part) or self._member(start, part)
        return start

    def _member(self, space: Space, name: str) -> Space | None:
        """What a module brings in from elsewhere (`pub use grep_printer as printer`), else a type of its own."""
        items = [item for path in space.files for item in self.files[path].imports if item.alias == name]
        for item in items if not space.prefix else ():
            key = (item.path, name)
            if item.module != "mod" and key not in self._open:
                self._open.add(key)
                parts = [*(item.module.split(".") if item.module else []), *([item.name] if item.name else [])]
                try:
                    return self._descend(item.path, self._inline(item), parts)
                finally:
                    self._open.discard(key)
        return Space(space.files, _dot(space.prefix, name))

    def hands_on(self, item: Import) -> bool:
        """A module's own parts see what it imports for itself."""
        return True

    def _above(self, space: Space) -> Space | None:
        if space.prefix:
            return Space(space.files, space.prefix.rpartition(".")[0])
        crate, module = self._place[space.files[0]]
        return self._module(crate, module[:-1]) if module else None

    def _first(self, path: str, name: str) -> Space | None:
        """A first part that is no module: a crate of the workspace, or a type of the file."""
        for folder, crate_name in self._packages:
            if crate_name == name:
                return self._module(_Crate(folder, "src"), ())
        crate, _ = self._place[path]
        if path not in self._types:
            types = (s for s in self.files[path].symbols if s.kind is SymbolKind.CLASS)
            self._types[path] = frozenset(s.qualname for s in types)
        defined = name in self._types[path]
        is_old = crate.folder in self._old or not self._packages  # paths start at the crate's root (edition 2015)
        return Space((path,), name) if defined else self._module(crate, (name,)) if is_old else None

    def _child(self, place: tuple[_Crate, tuple[str, ...]] | None, prefix: str, name: str) -> Space | None:
        if place is None:
            return None
        crate, module = place
        return self._module(crate, (*module, *(prefix.split(".") if prefix else ()), name))

    def _module(self, crate: _Crate, module: tuple[str, ...]) -> Space | None:
        files = self._modules.get((crate, module))
        shared = crate.root.rpartition("/")[0]
        if not files and shared in _OWN_CRATES:
            files = self._modules.get((_Crate(crate.folder, shared), module))
        return Space(tuple(files)) if files else None


def _declared(files: Mapping[str, FileSyntax]) -> frozenset[str]:
    """Files that another file of their folder declares: `mod x;`."""
    items = (item for file in files.values() for item in file.imports if item.module == "mod")
    return frozenset(f"{item.path.rpartition('/')[0]}/{item.name}.rs" for item in items)


def _packages(configs: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """(folder, crate name) of every Cargo.toml with a package."""
    out = []
    for path, data in sorted(configs.items()):
        found = _LIB.search(data) or _NAME.search(data)
        if path.rpartition("/")[2] == "Cargo.toml" and found is not None:
            out.append((path.rpartition("/")[0], found[1].decode("utf-8", "replace").replace("-", "_")))
    return out


def _module_parts(path: str) -> tuple[str, ...]:
    parts = path.removesuffix(".rs").split("/")
    return tuple(parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts)


def _dot(before: str, name: str) -> str:
    return f"{before}.{name}" if before else name


def imports(statement: Node, data: bytes) -> Iterator[Imported]:
    """`use a::{b, c as d, e::*};`, `pub use`, `extern crate a as b;`, `mod x;`"""
    exported = any(child.type == "visibility_modifier" for child in statement.children)
    if statement.type == "extern_crate_declaration":
        name, alias = statement.child_by_field_name("name"), statement.child_by_field_name("alias")
        if name is not None:
            yield Imported(_text(data, name), None, _text(data, alias or name), exported)
        return
    declared = statement.child_by_field_name("name")
    if declared is not None:
        yield Imported("mod", _text(data, declared), _text(data, declared), exported)
        return
    argument = statement.child_by_field_name("argument")
    stack = [(argument, "")] if argument is not None else []
    while stack:
        node, before = stack.pop()
        if node.type in ("scoped_use_list", "use_list"):
            path = node.child_by_field_name("path")
            inside = _dot(before, _path(data, path)) if path is not None else before
            items = node.child_by_field_name("list") or node
            stack.extend((child, inside) for child in reversed(items.named_children) if not child.is_extra)
        elif node.type == "use_wildcard":
            path_text = _path(data, node.named_children[0]) if node.named_children else ""
            yield Imported(_dot(before, path_text) if path_text else before, "*", "", exported)
        elif node.type == "use_as_clause":
            path, alias = node.child_by_field_name("path"), node.child_by_field_name("alias")
            if path is not None and alias is not None:
                yield from _one(_dot(before, _path(data, path)), _text(data, alias), exported=exported)
        else:
            yield from _one(_dot(before, _path(data, node)), None, exported=exported)


def _one(dotted: str, alias: str | None, *, exported: bool) -> Iterator[Imported]:
    module, _, name = dotted.rpartition(".")
    if name == "self":
        module, _, name = module.rpartition(".")
    if alias != "_" and name:
        yield Imported(module, name, alias or name, exported)


def _path(data: bytes, node: Node) -> str:
    return "".join(_text(data, node).split()).removeprefix("::").replace("::", ".")


def _text(data: bytes, node: Node) -> str:
    return data[node.start_byte : node.end_byte].decode("utf-8", "replace")
