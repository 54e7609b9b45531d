"""What a value can be, as far as the resolver of Python can tell. Pure.

A `Value` is one of several atoms; an empty one is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentctx.repo.modules import Module


@dataclass(frozen=True, slots=True)
class ModuleAtom:
    module: Module


@dataclass(frozen=True, slots=True)
class ClassAtom:
    """A repository class itself."""

    id: str


@dataclass(frozen=True, slots=True)
class Instance:
    id: str


@dataclass(frozen=True, slots=True)
class Function:
    """Repository functions that stand for one (variants). `owner`: the class whose attribute it was."""

    ids: tuple[str, ...]
    owner: str | None


@dataclass(frozen=True, slots=True)
class Super:
    """`super()` in a class. `owner`: that of the instance."""

    id: str
    owner: str


@dataclass(frozen=True, slots=True)
class Outside:
    """Something of a library by its dotted name: a module, class or function. ''  where the name isn't known."""

    name: str


@dataclass(frozen=True, slots=True)
class Thing:
    """An instance of a library's class, with its type arguments. `name` is '' where it isn't known."""

    name: str
    args: tuple[tuple[Atom, ...], ...]


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a container."""

    name: str
    of: Thing


@dataclass(frozen=True, slots=True)
class Returning:
    """Something that can be called, and what it gives: `Callable[..., X]`."""

    value: tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class TypeOf:
    """An unbound type variable, or another name for a type, with its instances."""

    value: tuple[Atom, ...]


Atom = ModuleAtom | ClassAtom | Instance | Function | Super | Outside | Thing | Method | Returning | TypeOf
Value = tuple[Atom, ...]


def joined(*values: Value) -> Value:
    """One of all of them, without repetition."""
    if len(values) == 1:
        return values[0]
    return tuple(dict.fromkeys(atom for value in values for atom in value))
