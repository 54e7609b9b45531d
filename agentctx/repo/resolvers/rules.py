"""What a language family says about names: the defaults, which each family's module overrides. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from agentctx.source import FileSyntax, Import


@dataclass(frozen=True, slots=True)
class Space:
    """Where an imported module's names are: files (sorted), and the qualified name inside of them ('' = top level)."""

    files: tuple[str, ...]
    prefix: str = ""


def words(text: str) -> frozenset[str]:
    """The words of a table written as text."""
    return frozenset(text.split())


class Rules:
    """Made once for all files of a family. `configs`: build files by path (`go.mod`, `tsconfig.json`, ...)."""

    languages: ClassVar[frozenset[str]] = frozenset()
    config_names: ClassVar[frozenset[str]] = frozenset()  # file names that `configs` should hold
    bare_members: ClassVar[bool] = False  # members are visible by name alone inside of their class
    own_names: ClassVar[frozenset[str]] = frozenset({"this"})  # the instance
    super_names: ClassVar[frozenset[str]] = frozenset({"super"})
    type_names: ClassVar[frozenset[str]] = frozenset()  # the class around (`Self`, `static`)
    constructors: ClassVar[frozenset[str]] = frozenset({"constructor"})
    makers: ClassVar[frozenset[str]] = frozenset()  # members of every class that give an instance (`new` of Ruby)
    builtins: ClassVar[frozenset[str]] = frozenset()  # names that are the language's own
    builtin_members: ClassVar[frozenset[str]] = frozenset()  # members that library types have too
    passthrough: ClassVar[frozenset[str]] = frozenset()  # members that give the thing itself (`unwrap`, `clone`)
    export_prefixes: ClassVar[tuple[str, ...]] = ("",)  # of the qualified names that a module hands out
    global_names: ClassVar[bool] = False  # top-level names are visible everywhere (C, Ruby, shell)
    structural: ClassVar[bool] = False  # a type implements an interface by having its methods

    def __init__(self, files: Mapping[str, FileSyntax], configs: Mapping[str, bytes]) -> None:
        self.files = files
        self.configs = configs

    def spaces(self, item: Import) -> tuple[Space, ...]:
        """The repository's modules that `item.module` means, best first; empty: it lies outside."""
        return ()

    def submodules(self, item: Import) -> tuple[Space, ...]:
        """The modules that `item.name` means inside of `item.module`, where that is no definition."""
        return ()

    def named_import(self, path: str, name: str) -> Import | None:
        """The import of a file that binds `name` where the statement itself doesn't tell (Go package names)."""
        return None

    def visible(self, path: str) -> Sequence[str]:
        """Other files whose top-level names are visible without an import."""
        return ()

    def same_class(self, one: str, other: str) -> bool:
        """Whether types of one qualified name in two files are one type."""
        return one == other

    def dotted(self, path: str, name: str) -> tuple[Space, ...]:
        """Modules or packages that the first part of a dotted name means without an import (`crate`, `a.b.C`)."""
        return ()
