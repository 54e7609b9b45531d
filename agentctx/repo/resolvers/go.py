"""Go: packages are folders, module paths come from `go.mod`, interfaces are implemented by having the methods."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from agentctx.repo.resolvers.imported import Imported
from agentctx.repo.resolvers.rules import Rules, Space, in_order, words
from agentctx.source import FileSyntax, Import

if TYPE_CHECKING:
    from tree_sitter import Node

_MODULE = re.compile(rb"^\s*module\s+\"?([^\s\"]+)", re.MULTILINE)
_VERSION = re.compile(r"/v\d+$|\.v\d+$")
_BUILTINS = words(
    """
    any append bool byte cap clear close comparable complex complex64 complex128 copy delete error false float32
    float64 imag int int8 int16 int32 int64 iota len make max min new nil panic print println real recover rune
    string true uint uint8 uint16 uint32 uint64 uintptr
    """
)
_MEMBERS = words(
    """
    Add Bytes Close Done Err Error Errorf Fatal Fatalf Get Header Helper Len Less Lock Log Name Next Open Print
    Printf Println Read ReadAll Reset Run Scan Seek Set Size Sprintf String Swap Unlock Unwrap Write WriteString
    """
)


class GoRules(Rules):
    languages = frozenset({"go"})
    closed = True
    config_names = frozenset({"go.mod"})
    own_names = frozenset[str]()
    super_names = frozenset[str]()
    constructors = frozenset[str]()
    builtins = _BUILTINS
    builtin_members = _MEMBERS
    structural = True

    def __init__(self, files: Mapping[str, FileSyntax], configs: Mapping[str, bytes]) -> None:
        super().__init__(files, configs)
        self._folders: dict[str, list[str]] = {}
        for path in sorted(files):
            self._folders.setdefault(_folder(path), []).append(path)
        self._modules = sorted(_modules(configs), key=lambda pair: (-len(pair[0]), pair))
        self._called: dict[str, dict[str, Import]] = {}
        self._visible: dict[tuple[str, str], Mapping[str, int]] = {}

    def spaces(self, item: Import) -> tuple[Space, ...]:
        folder = self._folder_of(item.module, item.path)
        code = (
            [path for path in self._folders.get(folder, ()) if not path.endswith("_test.go")]
            if folder is not None
            else []
        )
        return (Space(tuple(code)),) if code else ()

    def _folder_of(self, module: str, importer: str) -> str | None:
        if module.startswith("."):
            return _join(_folder(importer), module)
        for name, root in self._modules:
            if module == name or module.startswith(f"{name}/"):
                return _join(root, module[len(name) + 1 :])
        if self._modules:
            return None
        # Without go.mod (GOPATH): the longest tail of the import path that is a folder here.
        parts = module.split("/")
        tails = ("/".join(parts[at:]) for at in range(1, len(parts)))
        return next((tail for tail in tails if tail in self._folders), None) if "." in parts[0] else None

    def named_import(self, path: str, name: str) -> Import | None:
        """A package's name is what its files declare, not the last part of its path."""
        if path not in self._called:
            called: dict[str, Import] = {}
            for item in self.files[path].imports:
                for space in self.spaces(item):
                    called.setdefault(self.files[space.files[0]].package, item)
            self._called[path] = called
        return self._called[path].get(name)

    def visible(self, path: str) -> Mapping[str, int]:
        key = _folder(path), self.files[path].package
        if key not in self._visible:
            self._visible[key] = in_order(p for p in self._folders[key[0]] if self.files[p].package == key[1])
        return self._visible[key]

    def same_class(self, one: str, other: str) -> bool:
        return _folder(one) == _folder(other)


def _modules(configs: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """(module path, folder) of every go.mod."""
    for path, data in configs.items():
        found = _MODULE.search(data) if path.rpartition("/")[2] == "go.mod" else None
        if found is not None:
            yield found[1].decode("utf-8", "replace"), _folder(path)


def imports(statement: Node, data: bytes) -> Iterator[Imported]:
    """`import ( f "fmt"; . "x/y" )`: the package under its alias, else under the last part of its path."""
    stack = [statement]
    while stack:
        node = stack.pop()
        if node.type != "import_spec":
            stack.extend(reversed(node.named_children))
            continue
        path = node.child_by_field_name("path")
        name = node.child_by_field_name("name")
        if path is None:
            continue
        module = data[path.start_byte + 1 : path.end_byte - 1].decode("utf-8", "replace")
        alias = data[name.start_byte : name.end_byte].decode("utf-8", "replace") if name is not None else ""
        if alias == ".":
            yield Imported(module, "*", "")
        elif alias != "_":
            yield Imported(module, None, alias or _VERSION.sub("", module).rpartition("/")[2])


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _join(folder: str, rest: str) -> str:
    parts = folder.split("/") if folder else []
    for part in rest.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
