"""What a language family says about names: the defaults, which each family's module overrides. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from agentctx.source import FileSyntax, Import, Symbol


@dataclass(frozen=True, slots=True)
class Space:
    """Where an imported module's names are: files (sorted), and the qualified name inside of them ('' = top level)."""

    files: tuple[str, ...]
    prefix: str = ""


def in_order(paths: Iterable[str]) -> dict[str, int]:
    """Paths -> their places, for `Rules.visible`."""
    return {path: at for at, path in enumerate(paths)}


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
    guesses_names: ClassVar[bool] = False  # blocks can have a receiver that isn't written
    open_enums: ClassVar[bool] = False  # entries of an enum are names beside it
    export_prefixes: ClassVar[tuple[str, ...]] = ("",)  # of the qualified names that a module hands out
    closed: ClassVar[bool] = False  # every name is imported: one that isn't found is bound by what no text shows
    global_names: ClassVar[bool] = False  # top-level names are visible everywhere (C, Ruby, shell)
    objects: ClassVar[bool] = False  # objects and functions have members as types do (JavaScript)
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

    def visible(self, path: str) -> Mapping[str, int]:
        """Files whose top-level names are visible without an import -> their order; it may hold `path` itself.

        Files of one package should share one mapping.
        """
        return {}

    def hands_on(self, item: Import) -> bool:
        """Whether others can import what a module imports."""
        return item.exported

    def extends(self, symbol: Symbol) -> str | None:
        """The type that a function adds a member to from outside (extension functions); None for all others."""
        return None

    def opens(self, star: Import) -> bool:
        """Whether names of outside of the repository may come from an import of everything."""
        return not self.spaces(star)

    def detached(self, space: Space, name: str, symbol: Symbol) -> bool:
        """Whether a module hands out a member by its own name (an extension function)."""
        return False

    def sees(self, symbol: Symbol) -> bool:
        """Whether a definition of a visible file is visible by its name alone."""
        return True

    def prefixes(self, path: str) -> Sequence[str]:
        """What names of the visible files may have before them beside the definitions around a use."""
        return ()

    def same_class(self, one: str, other: str) -> bool:
        """Whether types of one qualified name in two files are one type."""
        return one == other

    def dotted(self, path: str, name: str) -> tuple[Space, ...]:
        """Modules or packages that the first part of a dotted name means without an import (`crate`, `a.b.C`)."""
        return ()

    def reads(self, symbol: Symbol) -> bool:
        """Whether a method is called by reading it (a getter)."""
        return False
