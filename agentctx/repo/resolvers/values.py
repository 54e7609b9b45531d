"""What expressions are: chains of names, members and calls, followed through declared types and given values. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from agentctx.repo.resolvers.exports import Found
from agentctx.repo.resolvers.names import Names
from agentctx.repo.resolvers.rules import Space
from agentctx.repo.resolvers.tables import Ids
from agentctx.source import Symbol, SymbolKind

MAX_STEPS = 12
MAX_VALUES = 16  # that one value is followed through
CALLABLE = (SymbolKind.FUNCTION, SymbolKind.METHOD)


@dataclass(frozen=True, slots=True)
class Value:
    """What an expression is: definitions themselves, an instance of types, a module, or something outside."""

    ids: Ids = ()
    instance: Ids = ()
    space: Space | None = None
    external: bool = False
    via: int | None = None

    def __bool__(self) -> bool:
        return bool(self.ids or self.instance or self.external) or self.space is not None


NO_VALUE = Value()


class Values:
    """Lookups of one family, remembered."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._tables = names.tables
        self._rules = names.rules
        self._classes = names.classes
        self._values: dict[tuple[str, str | None, str], Value] = {}
        self._open: list[tuple[str, str | None, str]] = []  # values that are being looked up
        self._is_cut = False

    def value(self, path: str, scope: str | None, chain: str) -> Value:
        """What a chain (`repo.chains`) is, seen from a scope."""
        key = (path, scope, chain)
        if key in self._values:
            return self._values[key]
        if len(self._open) > MAX_VALUES:
            self._is_cut = True
            return NO_VALUE
        self._values[key] = NO_VALUE  # a cycle
        self._open.append(key)
        first, rest = split(chain)
        value = self._first(path, scope, first)
        for part in rest[:MAX_STEPS]:
            value = self.step(value, part) if value else value
        self._open.pop()
        if self._is_cut:  # what was cut short here may be known when it is asked for by itself
            del self._values[key]
            self._is_cut = bool(self._open)
        else:
            self._values[key] = value
        return value

    def _first(self, path: str, scope: str | None, first: str) -> Value:
        if first.startswith("<"):
            return self.instance(path, scope, first[1:-1])
        name, called = first.removesuffix("()"), first.endswith("()")
        if name in self._rules.own_names:
            around = self._names.class_around(scope)
            return Value(instance=around, space=None if around else self._names.object_around(scope))
        if name in self._rules.super_names:
            around = self._names.class_around(scope)
            return Value(instance=tuple(base for cls in around for base in self._classes.bases(cls)[0]))
        if name in self._rules.type_names:
            around = self._names.class_around(scope)
            return Value(instance=around) if called else Value(ids=around)
        return self._typed(self._names.name(path, scope, name), called=called)

    def instance(self, path: str, scope: str | None, written: str) -> Value:
        """What a type's name tells of what has the type."""
        ids = self._names.type_ids(path, scope, written)
        if ids:
            return Value(instance=ids)
        found = self._names.dotted(path, scope, written)
        return Value(ids=found.ids if self._rules.objects else (), external=found.external)

    def step(self, value: Value, part: str) -> Value:
        """The member of a value that the next part of a chain names, or what calling it gives."""
        name, called = part.removesuffix("()"), part.endswith("()")
        if value.external:
            return value
        if called and name in self._rules.makers and self._tables.classes(value.ids):
            return Value(instance=self._tables.classes(value.ids), via=value.via)
        ids = self.members(value, name)
        if not ids and value.space is not None:
            found = self._names.inside(Found(space=value.space, via=value.via), name)
            return self._typed(found, called=called, around=value)
        if not ids:
            return value if name in self._rules.passthrough else NO_VALUE
        return self._typed(Found(ids, via=value.via), called=called, around=value)

    def members(self, value: Value, name: str) -> Ids:
        """The definitions of a name in all that a value is."""
        owners = (*value.instance, *value.ids)
        return tuple(dict.fromkeys(id for owner in owners for id in self._names.members_of(owner, name)))

    def _typed(self, found: Found, *, called: bool, around: Value = NO_VALUE) -> Value:
        """The value of what was found, or of calling it."""
        if found.space is not None and not found.ids and called:
            main = self._names.export(found.space, "default")
            return self._typed(replace(main, via=found.via), called=True) if main.ids else NO_VALUE
        if found.external or (found.space is not None and not found.ids):
            return Value(space=found.space, external=found.external, via=found.via)
        ids: list[str] = []
        made: list[Value] = []
        for id in found.ids:
            symbol = self._tables.symbols[id]
            is_type = symbol.kind is SymbolKind.CLASS
            given = NO_VALUE if is_type else self._given(symbol, around, called=called)
            made.append(Value(instance=(id,)) if is_type and called else given)
            if not called and (is_type or symbol.type is None or not given):
                ids.append(id)
        return _united(ids, made, None if called else found.space, found.via)

    def _given(self, symbol: Symbol, around: Value, *, called: bool) -> Value:
        """What a definition that is no type holds; what calling it gives."""
        is_function = symbol.kind in CALLABLE and not self._rules.reads(symbol)
        if is_function and not called:
            return NO_VALUE
        if symbol.type is not None:
            return self._type_of(symbol, around)
        if symbol.value == "=this" and around:
            return around
        scope = symbol.id if symbol.kind in CALLABLE else symbol.parent
        if symbol.value.startswith("="):
            return self.value(symbol.path, scope, symbol.value[1:] + ("()" if called and not is_function else ""))
        return self.instance(symbol.path, scope, symbol.value) if symbol.value else NO_VALUE

    def _type_of(self, symbol: Symbol, around: Value) -> Value:
        assert symbol.type is not None
        if around.instance and symbol.type in (self._rules.type_names | self._rules.own_names):
            return Value(instance=around.instance)
        return self.instance(symbol.path, symbol.id, symbol.type)


def _united(ids: Iterable[str], values: Sequence[Value], space: Space | None, via: int | None) -> Value:
    """All that the values are, and the definitions `ids` themselves."""
    every = dict.fromkeys((*ids, *(id for value in values for id in value.ids)))
    instance = dict.fromkeys(id for value in values for id in value.instance)
    space = space or next((value.space for value in values if value.space is not None), None)
    external = not every and not instance and space is None and any(value.external for value in values)
    return Value(tuple(every), tuple(instance), space, external, via)


@lru_cache(maxsize=8192)
def split(chain: str) -> tuple[str, tuple[str, ...]]:
    """`<a.B>.c.d()` -> ('<a.B>', ('c', 'd()'))."""
    if chain.startswith("<"):
        head, _, tail = chain.partition(">")
        return head + ">", tuple(part for part in tail.split(".") if part)
    first, *rest = chain.split(".")
    return first, tuple(rest)
