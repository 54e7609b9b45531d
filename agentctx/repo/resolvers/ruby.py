"""Ruby: constants are global, classes are open, `new` makes instances, `require` names files."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from agentctx.repo.resolvers.imported import Imported
from agentctx.repo.resolvers.rules import Rules, Space, words
from agentctx.source import FileSyntax, Import

if TYPE_CHECKING:
    from tree_sitter import Node

_MEMBERS = words(
    """
    [] []= == <=> << + - * / ! all? any? append call chomp class clear clone close collect compact concat count
    create delete detect dig downcase each each_with_index empty? end_with? eql? fetch find first flatten format
    freeze get gsub hash has_key? id include? index inject insert inspect instance_of? is_a? join key? keys
    kind_of? last length lines map match max merge message min name new nil? pop puts push raise read reduce
    reject replace respond_to? reverse run select send set shift size slice sort sort_by split start start_with?
    strip sub sum take tap test times to_a to_h to_i to_s to_str to_sym type uniq unshift upcase update value
    values write zip
    """
)


class RubyRules(Rules):
    languages = frozenset({"ruby"})
    bare_members = True
    guesses_names = True
    own_names = frozenset({"self"})
    constructors = frozenset({"initialize"})
    makers = frozenset({"new"})
    builtin_members = _MEMBERS
    passthrough = words("freeze dup clone tap itself")
    global_names = True

    def __init__(self, files: Mapping[str, FileSyntax], configs: Mapping[str, bytes]) -> None:
        super().__init__(files, configs)

    def spaces(self, item: Import) -> tuple[Space, ...]:
        path = self._required(item.path, item.module)
        return (Space((path,)),) if path is not None else ()

    def _required(self, importer: str, module: str) -> str | None:
        stem = module.removesuffix(".rb")
        relative = posixpath.normpath(posixpath.join(posixpath.dirname(importer), stem)) + ".rb"
        if module.startswith(".") or relative in self.files:
            return relative if relative in self.files else None
        found = [path for path in self.files if path == f"{stem}.rb" or path.endswith(f"/{stem}.rb")]
        return min(found, key=lambda p: (len(p), p), default=None)

    def opens(self, star: Import) -> bool:
        """What `require` loads is global: it says nothing of one name."""
        return False

    def same_class(self, one: str, other: str) -> bool:
        return True


def imports(statement: Node, data: bytes) -> Iterator[Imported]:
    """`require "a/b"`, `require_relative "../c"`, `load`, `autoload :X, "x"`"""
    arguments = statement.child_by_field_name("arguments")
    method = statement.child_by_field_name("method")
    strings = [c for c in arguments.named_children if c.type == "string"] if arguments is not None else []
    if not strings or method is None:
        return
    module = data[strings[-1].start_byte + 1 : strings[-1].end_byte - 1].decode("utf-8", "replace")
    relative = data[method.start_byte : method.end_byte] == b"require_relative"
    yield Imported(f"./{module}" if relative and not module.startswith(".") else module, "*", "")
