"""Annotations -> the instances that they allow. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentctx.repo.atoms import ClassAtom, Instance, Outside, Returning, TypeOf, Value, joined
from agentctx.repo.value_text import Annotation, parse_annotation

if TYPE_CHECKING:
    from agentctx.repo.values import Place, Values

_UNIONS = frozenset({"Union", "Optional", "|"})
_WRAPPERS = frozenset({"Annotated", "Final", "ClassVar", "Required", "NotRequired", "InitVar", "Mapped", "ReadOnly"})
_AWAITED = frozenset({"Awaitable", "Coroutine", "Future", "Task"})
_ITSELF = frozenset({"Self"})
_NOTHING = frozenset(
    {"None", "Any", "object", "Literal", "LiteralString", "Never", "NoReturn", "TypeGuard", "...", "?"}
)


class Annotations:
    def __init__(self, values: Values) -> None:
        self._values = values

    def instances(self, place: Place, text: str) -> Value:
        """What a value annotated with `text` may be."""
        return self._instances(place, parse_annotation(text))

    def _instances(self, place: Place, annotation: Annotation) -> Value:
        name, args = annotation.name, annotation.args
        last = name.rpartition(".")[2]
        if last in _NOTHING:
            return ()
        if last in _UNIONS:
            return joined(*(self._instances(place, arg) for arg in args)) if args else ()
        if last in _WRAPPERS and args:
            return self._instances(place, args[0])
        if last in _AWAITED and args:
            return self._instances(place, args[-1])
        if last in _ITSELF:
            return self._values.name(place, "@self")
        if last in ("type", "Type"):
            return self._classes(place, args)
        if last == "Callable":
            return (Returning(self._instances(place, args[-1])),) if args else ()
        return self._named(place, name, args)

    def _classes(self, place: Place, args: tuple[Annotation, ...]) -> Value:
        found = self._instances(place, args[0]) if args else ()
        return tuple(ClassAtom(atom.id) for atom in found if isinstance(atom, Instance))

    def _named(self, place: Place, name: str, args: tuple[Annotation, ...]) -> Value:
        found: list[Value] = []
        for atom in self._values.type_named(place, name):
            match atom:
                case ClassAtom(id):
                    found.append((Instance(id),))
                case TypeOf(value):
                    found.append(value)
                case Outside(outer):
                    given = tuple(self._instances(place, arg) for arg in args)
                    if args and args[-1].name == "..." and len(args) == 2:
                        outer, given = "typing.List", given[:1]
                    found.append(self._values.thing(outer, given))
        return joined(*found) if found else ()
