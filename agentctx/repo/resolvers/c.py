"""C and C++: what a file includes is visible, transitively; functions are global and declared apart from their text."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from agentctx.repo.resolvers.imported import Imported
from agentctx.repo.resolvers.rules import Rules, Space, in_order, words
from agentctx.source import FileSyntax, Import

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_INCLUDED = 400
_MEMBERS = words(
    """
    append at back begin c_str capacity clear close count data emplace emplace_back empty end erase find first
    flush front get insert join length load lock max min name open pop pop_back push push_back read release
    reserve reset resize second size store str substr swap top type unlock value wait write
    """
)


class CRules(Rules):
    languages = frozenset({"c", "cpp"})
    bare_members = True
    super_names = frozenset[str]()
    constructors = frozenset[str]()
    builtin_members = _MEMBERS
    global_names = True
    open_enums = True
    builtins = words("std")

    def __init__(self, files: Mapping[str, FileSyntax], configs: Mapping[str, bytes]) -> None:
        super().__init__(files, configs)
        self._by_name: dict[str, list[str]] = {}
        for path in sorted(files):
            self._by_name.setdefault(path.rpartition("/")[2], []).append(path)
        self._visible: dict[str, Mapping[str, int]] = {}

    def spaces(self, item: Import) -> tuple[Space, ...]:
        path = self._included(item.path, item.module)
        return (Space((path,)),) if path is not None else ()

    def _included(self, importer: str, module: str) -> str | None:
        """Next to the includer, else the file whose path ends with what is written; the nearest of several."""
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(importer), module))
        if beside in self.files:
            return beside
        tail = posixpath.normpath(module).lstrip("./")
        candidates = [p for p in self._by_name.get(tail.rpartition("/")[2], ()) if p == tail or p.endswith(f"/{tail}")]
        return min(candidates, key=lambda p: (-_shared(p, importer), len(p), p), default=None)

    def visible(self, path: str) -> Mapping[str, int]:
        if path not in self._visible:
            found: list[str] = []
            seen = {path}
            queue = [path]
            for at in queue:
                for item in self.files[at].imports:
                    other = self._included(at, item.module) if item.alias == "" else None
                    if other is not None and other not in seen and len(seen) < MAX_INCLUDED:
                        seen.add(other)
                        found.append(other)
                        queue.append(other)
            self._visible[path] = in_order(found)
        return self._visible[path]

    def same_class(self, one: str, other: str) -> bool:
        """A class's members are defined in other files than the class; names of types are unique in a program."""
        return one == other or other in self.visible(one) or one in self.visible(other) or _stem(one) == _stem(other)


def imports(statement: Node, data: bytes) -> Iterator[Imported]:
    """`#include "a/b.h"`, `using namespace a;`, `using a::b;`"""
    path = statement.child_by_field_name("path")
    if path is not None:
        module = data[path.start_byte + 1 : path.end_byte - 1].decode("utf-8", "replace")
        if module:
            yield Imported(module, "*", "")


def _shared(one: str, other: str) -> int:
    parts = zip(one.split("/")[:-1], other.split("/")[:-1], strict=False)
    return next((at for at, (a, b) in enumerate(parts) if a != b), min(one.count("/"), other.count("/")))


def _stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]
