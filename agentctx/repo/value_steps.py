"""One step from a value to the next: an attribute, a call, an item, what iterating or `with` gives. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from agentctx.repo import containers
from agentctx.repo.atoms import Atom, ClassAtom, Function, Instance, Method, Outside, Returning, Thing, Value, joined
from agentctx.repo.hierarchy import Hierarchy
from agentctx.repo.outside import result_of_call

if TYPE_CHECKING:
    from agentctx.repo.values import Values


class Steps:
    def __init__(self, values: Values, hierarchy: Hierarchy) -> None:
        self._values = values
        self._hierarchy = hierarchy

    def step(self, value: Value, step: str) -> Value:
        if not value and step[0] != "%":
            return ()
        match step[0]:
            case ".":
                return self._values.attribute(value, step[1:])
            case "(":
                return self._each(self._called, value)
            case "*":
                return self._each(self._iterated, value)
            case "^":
                return self._each(self._entered, value)
            case "%":
                return (_boxed(step, value),)
        index = int(step[1:]) if step[0] == "#" else None
        return joined(*(self._item(atom, index) for atom in value))

    def _each(self, rule: Callable[[Atom], Value], value: Value) -> Value:
        return joined(*(rule(atom) for atom in value))

    def _called(self, atom: Atom) -> Value:
        match atom:
            case ClassAtom(id):
                return (Instance(id),)
            case Function(ids, owner):
                return self._values.returned(ids, owner)
            case Instance(id):
                return self._values.returned(self._hierarchy.member(id, "__call__"), id)
            case Method():
                return containers.called(atom)
            case Returning(value):
                return value
            case Outside() | Thing():
                return result_of_call(atom)
        return ()

    def _iterated(self, atom: Atom) -> Value:
        if isinstance(atom, Thing):
            return containers.element(atom)
        if not isinstance(atom, Instance):
            return ()
        for name in ("__iter__", "__aiter__"):
            if found := self._hierarchy.member(atom.id, name):
                made = self._values.returned(found, atom.id)
                if made == (atom,):
                    following = self._hierarchy.member(atom.id, name.replace("iter", "next"))
                    return self._values.returned(following, atom.id)
                return self._each(self._iterated, made) if atom not in made else ()
        return self._values.returned(self._hierarchy.member(atom.id, "__getitem__"), atom.id)

    def _entered(self, atom: Atom) -> Value:
        if isinstance(atom, Thing):
            return containers.entered(atom)
        if not isinstance(atom, Instance):
            return ()
        for name in ("__enter__", "__aenter__"):
            if found := self._hierarchy.member(atom.id, name):
                return self._values.returned(found, atom.id)
        return ()

    def _item(self, atom: Atom, index: int | None) -> Value:
        if isinstance(atom, Thing):
            return containers.item(atom, index)
        if isinstance(atom, Instance):
            return self._values.returned(self._hierarchy.member(atom.id, "__getitem__"), atom.id)
        return ()


def _boxed(step: str, value: Value) -> Thing:
    if step == "%d":
        return containers.container("dict", (), value)
    return containers.container("list" if step == "%l" else "raised", value)
