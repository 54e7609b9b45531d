"""The attribute of a value as a binding: which definition `x.name` means, once it is known what `x` may be. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from agentctx.repo.atoms import Atom, ClassAtom, Function, Instance, ModuleAtom, Returning, Super, TypeOf, Value
from agentctx.repo.bindings import Bindings
from agentctx.repo.builtin_members import OBJECT_MEMBERS
from agentctx.repo.guesses import Guesses
from agentctx.repo.hierarchy import Hierarchy
from agentctx.repo.name_tables import EXTERNAL, UNKNOWN, Binding
from agentctx.source import Resolution


class Members:
    """Answers are remembered."""

    def __init__(self, bindings: Bindings, hierarchy: Hierarchy, guesses: Guesses) -> None:
        self._bindings = bindings
        self._hierarchy = hierarchy
        self._guesses = guesses
        self._known: dict[tuple[str, str, str], Binding] = {}

    def of(self, value: Value, name: str, path: str) -> Binding | None:
        """As a file at `path` sees it; None where none of the possible values can be looked into."""
        if len(value) == 1:
            return self._of_atom(value[0], name, path)
        found = [binding for atom in value if (binding := self._of_atom(atom, name, path)) is not None]
        for state in (Resolution.RESOLVED, Resolution.AMBIGUOUS):
            fitting = [binding for binding in found if binding.state is state]
            if fitting:
                return _together(fitting)
        return found[0] if found else None

    def _of_atom(self, atom: Atom, name: str, path: str) -> Binding | None:
        if isinstance(atom, Instance | ClassAtom):
            return self._of_class(atom.id, name, path)
        if isinstance(atom, ModuleAtom):
            return self._bindings.export(atom.module, name)
        if isinstance(atom, Super):
            found = self._hierarchy.member(atom.id, name, skip_own=True)
            return Binding(Resolution.RESOLVED, found) if found else None
        if isinstance(atom, Function):  # whatever its decorators made of it
            return None if any(self._bindings.symbols[id].decorators for id in atom.ids) else EXTERNAL
        return None if isinstance(atom, Returning | TypeOf) else EXTERNAL

    def _of_class(self, cls: str, name: str, path: str) -> Binding:
        key = (cls, name, path)
        if key not in self._known:
            self._known[key] = self._look(cls, name, path)
        return self._known[key]

    def _look(self, cls: str, name: str, path: str) -> Binding:
        found = self._hierarchy.member(cls, name)
        if found:
            return Binding(Resolution.RESOLVED, found)
        below = {id for sub in self._hierarchy.subclasses(cls) for id in self._hierarchy.own(sub, name)}
        if below:
            return Binding(Resolution.AMBIGUOUS, self._guesses.nearest(below, path))
        return EXTERNAL if name in OBJECT_MEMBERS or self._hierarchy.is_opaque(cls) else UNKNOWN


def _together(bindings: Sequence[Binding]) -> Binding:
    """All targets of bindings of one state."""
    first = bindings[0]
    if len(bindings) == 1:
        return first
    targets = tuple(dict.fromkeys(id for binding in bindings for id in binding.targets))
    handed = tuple(dict.fromkeys(door for binding in bindings for door in binding.handed))
    return Binding(first.state, targets, first.module, handed=handed)
