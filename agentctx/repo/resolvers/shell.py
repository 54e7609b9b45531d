"""Bash: functions are global once their file is sourced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agentctx.repo.resolvers.imported import Imported
from agentctx.repo.resolvers.rules import Rules, Space, words
from agentctx.source import Import

if TYPE_CHECKING:
    from tree_sitter import Node


class ShellRules(Rules):
    languages = frozenset({"bash"})
    own_names = frozenset[str]()
    super_names = frozenset[str]()
    constructors = frozenset[str]()
    builtins = words(
        "cd echo eval exit export false local printf pwd read return set shift source test trap true unset"
    )
    global_names = True

    def spaces(self, item: Import) -> tuple[Space, ...]:
        """The file whose path ends with what follows the last variable: `$DIR/lib/x.sh` -> `lib/x.sh`."""
        tail = item.module.rpartition("}")[2].rpartition(")")[2].lstrip("./\"'")
        if item.module.startswith("$"):
            tail = (tail.partition("/")[2] or tail).lstrip("./")
        found = [path for path in self.files if tail and (path == tail or path.endswith(f"/{tail}"))]
        nearest = min(found, key=lambda p: (-_shared(p, item.path), len(p), p), default=None)
        return (Space((nearest,)),) if nearest is not None else ()


def imports(statement: Node, data: bytes) -> Iterator[Imported]:
    """`source lib.sh`, `. "$DIR/x.sh"`"""
    argument = statement.child_by_field_name("argument")
    if argument is not None:
        module = data[argument.start_byte : argument.end_byte].decode("utf-8", "replace").strip("\"'")
        if module:
            yield Imported(module, "*", "")


def _shared(one: str, other: str) -> int:
    parts = zip(one.split("/")[:-1], other.split("/")[:-1], strict=False)
    return next((at for at, (a, b) in enumerate(parts) if a != b), min(one.count("/"), other.count("/")))
