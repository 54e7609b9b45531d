"""The names of one Python file, and what a name can be bound to. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agentctx.repo.modules import Module
from agentctx.source import FileSyntax, Import, Resolution, Symbol

ACCESSORS = ("setter", "getter", "deleter")


@dataclass(frozen=True, slots=True)
class Binding:
    """What a name is bound to: symbols (`targets`; a module's is its path), or nothing of the repository.

    `module` is set for modules and packages. `via` is the import unit of the asking file that brings the name in.
    `origin`: the dotted name of what was imported from outside of the repository. `handed`: the imports of other files
    by which it gets there, as (path, unit).
    """

    state: Resolution
    targets: tuple[str, ...] = ()
    module: Module | None = None
    via: int | None = None
    origin: str = ""
    handed: tuple[tuple[str, int], ...] = ()


EXTERNAL = Binding(Resolution.EXTERNAL)
UNKNOWN = Binding(Resolution.UNKNOWN)


@dataclass(slots=True)
class FileTable:
    """The names of one file by the definition that holds them (None: the module)."""

    file: FileSyntax
    members: dict[str | None, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    imports: dict[str | None, dict[str, list[Import]]] = field(default_factory=dict)
    stars: list[Import] = field(default_factory=list)
    top: dict[str, Binding | None] = field(default_factory=dict)  # what the module's own names mean, as asked so far
    overloads: dict[tuple[str | None, str], tuple[str, ...]] = field(default_factory=dict)
    setters: dict[tuple[str | None, str], tuple[str, ...]] = field(default_factory=dict)


def make_table(file: FileSyntax) -> FileTable:
    """Index a file. Overloads and property setters give way to what they belong to."""
    table = FileTable(file)
    groups: dict[tuple[str | None, str], list[Symbol]] = {}
    for symbol in file.symbols:
        groups.setdefault((symbol.parent, symbol.name), []).append(symbol)
    for (parent, name), symbols in groups.items():
        table.members.setdefault(parent, {})[name] = _variants(symbols)
        if len(symbols) > 1:
            table.overloads[parent, name] = tuple(s.id for s in symbols if "overload" in _lasts(s))
            table.setters[parent, name] = tuple(s.id for s in symbols if "setter" in _lasts(s))
    for imported in file.imports:
        if imported.name == "*":
            table.stars.append(imported)
        else:
            table.imports.setdefault(imported.scope, {}).setdefault(imported.alias, []).append(imported)
    return table


def _variants(symbols: Sequence[Symbol]) -> tuple[str, ...]:
    """All definitions of one name in one scope: an `if` and its `else` may both define it."""
    main = [s for s in symbols if not any(_is_minor(decorator) for decorator in s.decorators)]
    return tuple(sorted(s.id for s in main or symbols))


def _lasts(symbol: Symbol) -> list[str]:
    return [decorator.rpartition(".")[2] for decorator in symbol.decorators]


def _is_minor(decorator: str) -> bool:
    last = decorator.rpartition(".")[2]
    return last == "overload" or ("." in decorator and last in ACCESSORS)
