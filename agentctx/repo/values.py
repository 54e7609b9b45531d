"""What expressions give: the texts of `python_exprs`, evaluated over the whole repository. Pure.

Evaluation follows functions into what they return and fields into what is assigned to them, to a fixed depth. What
was cut short there is not remembered, so no answer depends on which question came first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from agentctx.repo import containers
from agentctx.repo.annotations import Annotations
from agentctx.repo.atoms import (
    Atom,
    ClassAtom,
    Function,
    Instance,
    ModuleAtom,
    Outside,
    Returning,
    Super,
    Thing,
    TypeOf,
    Value,
    joined,
)
from agentctx.repo.bindings import Bindings
from agentctx.repo.hierarchy import Hierarchy, is_property
from agentctx.repo.name_tables import Binding
from agentctx.repo.outside import attribute_of, thing_of
from agentctx.repo.value_steps import Steps
from agentctx.repo.value_text import Term, parse_value
from agentctx.source import Resolution, Symbol, SymbolKind

MAX_DEPTH = 10
MAX_STEPS = 400  # evaluations for one question
_ENUMS = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "ReprEnum"})


class Place(NamedTuple):
    """Where names are looked up. `owner`: the class whose instance `self` is; None: that of the method around."""

    path: str
    scope: str | None
    in_class: bool = False
    owner: str | None = None


class Values:
    """Answers are remembered."""

    def __init__(self, bindings: Bindings, hierarchy: Hierarchy) -> None:
        self._bindings = bindings
        self._hierarchy = hierarchy
        self._symbols = bindings.symbols
        self._annotations = Annotations(self)
        self._steps_of = Steps(self, hierarchy)
        self._known: dict[tuple[Place, str], Value] = {}
        self._open: set[tuple[Place, str]] = set()
        self._steps = 0
        self._is_cut = False

    # ------------------------------------------------------------ texts

    def of(self, place: Place, text: str) -> Value:
        """What an expression gives in a place; () where nobody can tell."""
        key = (place, text)
        found = self._known.get(key)
        if found is not None:
            return found
        is_question = not self._open
        if is_question:
            self._steps, self._is_cut = 0, False
        self._steps += 1
        if key in self._open or len(self._open) >= MAX_DEPTH or self._steps > MAX_STEPS:
            self._is_cut = True
            return ()
        before, self._is_cut = self._is_cut, False
        self._open.add(key)
        found = self._term(place, parse_value(text.removeprefix(":").removeprefix("=")))
        self._open.discard(key)
        if is_question or not self._is_cut:
            self._known[key] = found
        self._is_cut = self._is_cut or before
        return found

    def _term(self, place: Place, term: Term) -> Value:
        match term.kind:
            case "type":
                value = self._annotations.instances(place, term.text)
            case "choice":
                value = joined(*(self._term(place, part) for part in term.parts))
            case "tuple":
                value = (containers.container("tuple", *(self._term(place, part) for part in term.parts)),)
            case _:
                value = self.name(place, term.text)
        for step in term.steps:
            value = self._steps_of.step(value, step)
        return value

    def name(self, place: Place, name: str) -> Value:
        """What a name is; also `@self`, `@cls`, `@super` and literals."""
        if name[0] == "@":
            return self._special(place, name)
        if name[0] == "$":
            return () if name == "$None" else (Thing(name[1:], ()),)
        if name == "?":
            return ()
        if name[0] == "!":
            return self._absolute(place, name[1:])
        return self.of_binding(
            self._bindings.name(place.path, place.scope, name, in_class=place.in_class), f"builtins.{name}"
        )

    def _absolute(self, place: Place, dotted: str) -> Value:
        """What a dotted name means that starts with a module: `package.module.Class`."""
        first, *rest = dotted.split(".")
        module, _ = self._bindings.modules.absolute(first, place.path)
        value: Value = (ModuleAtom(module),) if module is not None else (Outside(first),)
        for part in rest:
            value = self.attribute(value, part)
        return value

    def _special(self, place: Place, name: str) -> Value:
        around = self.class_around(place.scope)
        if name == "@super":
            return (Super(around, place.owner or around),) if around is not None else ()
        owner = place.owner or around
        if owner is None:
            return ()
        return (ClassAtom(owner) if name == "@cls" else Instance(owner),)

    def class_around(self, scope: str | None) -> str | None:
        """The class of the method around a scope, or the class that the scope is."""
        symbol = self._symbols.get(scope or "")
        while symbol is not None and symbol.kind not in (SymbolKind.METHOD, SymbolKind.CLASS):
            symbol = self._symbols.get(symbol.parent or "")
        if symbol is None:
            return None
        return symbol.id if symbol.kind is SymbolKind.CLASS else symbol.parent

    # ------------------------------------------------------------ attributes and symbols

    def attribute(self, value: Value, name: str) -> Value:
        """What `value.name` is."""
        return joined(*(self._attribute(atom, name) for atom in value)) if value else ()

    def _attribute(self, atom: Atom, name: str) -> Value:
        match atom:
            case ModuleAtom(module):
                return self.of_binding(self._bindings.export(module, name))
            case ClassAtom(id) | Instance(id):
                return self._member(id, name, id)
            case Super(id, owner):
                return self.of_symbols(self._hierarchy.member(id, name, skip_own=True), owner)
            case Outside(outer):
                return (Outside(f"{outer}.{name}"),)
            case Thing("raised", args) if name == "value":
                return args[0]
            case Thing():
                method = containers.method(atom, name)
                return (method if method is not None else attribute_of(atom, name),)
        return ()

    def _member(self, cls: str, name: str, owner: str) -> Value:
        found = self._hierarchy.member(cls, name)
        if found:
            return self.of_symbols(found, owner)
        if getter := self._hierarchy.member(cls, "__getattr__"):
            return self.returned(getter, owner)
        return ()

    def of_binding(self, binding: Binding, otherwise: str = "") -> Value:
        """What a name is bound to. `otherwise`: the dotted name of what is external and wasn't imported."""
        if binding.module is not None:
            return (ModuleAtom(binding.module),)
        if binding.state is Resolution.EXTERNAL:
            return (Outside(binding.origin or otherwise),)
        return self.of_symbols(binding.targets, None)

    def of_symbols(self, ids: Iterable[str], owner: str | None) -> Value:
        """What definitions of one name are. `owner`: the class that they were asked of."""
        symbols = [self._symbols[id] for id in ids if id in self._symbols]
        functions = [s for s in symbols if s.kind in (SymbolKind.FUNCTION, SymbolKind.METHOD)]
        found = [self._of_symbol(symbol, owner) for symbol in symbols if symbol not in functions]
        if functions:
            found.append(self._of_functions(functions, owner))
        return joined(*found) if found else ()

    def _of_symbol(self, symbol: Symbol, owner: str | None) -> Value:
        if symbol.kind is SymbolKind.CLASS:
            return (ClassAtom(symbol.id),)
        if symbol.kind is SymbolKind.FIELD and symbol.parent is not None and self._is_enum(symbol.parent):
            return (Instance(symbol.parent),)
        if not symbol.value or symbol.value[0] == "=":
            return ()
        return self.of(Place(symbol.path, symbol.parent, True, owner), symbol.value)

    def _of_functions(self, symbols: list[Symbol], owner: str | None) -> Value:
        ids = tuple(symbol.id for symbol in symbols)
        for symbol in symbols:
            if is_property(symbol):
                return self.returned(ids, owner)
        made = joined(*(self._decorated(symbol) for symbol in symbols))
        return made or (Function(ids, owner),)

    def _decorated(self, symbol: Symbol) -> Value:
        """What a decorator makes of a function, where it says that it gives an instance of a repository class."""
        for written in symbol.decorators:
            if written.rpartition(".")[2] in _KEEPING:
                continue
            value = self.of(Place(symbol.path, symbol.parent, True), written) if _is_dotted(written) else ()
            made = [atom for atom in value if isinstance(atom, Function)]
            results = joined(*(self._results(atom) for atom in made)) if made else ()
            if results:
                return results
        return ()

    def _results(self, function: Function) -> Value:
        """The instances that a decorator, or what it returns, gives."""
        found: list[Value] = []
        for id in self._bindings.overloads(function.ids):
            for atom in self.returned((id,), function.owner):
                found.append(atom.value if isinstance(atom, Returning) else (atom,))
        return tuple(dict.fromkeys(a for value in found for a in value if isinstance(a, Instance)))

    def _is_enum(self, cls: str) -> bool:
        return any(
            base.rpartition(".")[2] in _ENUMS
            for owner in self._hierarchy.order(cls)
            for base in self._symbols[owner].bases
        )

    def returned(self, ids: tuple[str, ...], owner: str | None) -> Value:
        """What calling functions gives."""
        found: list[Value] = []
        for id in ids:
            symbol = self._symbols[id]
            if symbol.value:
                is_declared = symbol.value[0] == ":"
                place = Place(symbol.path, symbol.parent if is_declared else symbol.id, is_declared, owner)
                found.append(self.of(place, symbol.value))
        return joined(*found) if found else ()

    # ------------------------------------------------------------ types

    def type_named(self, place: Place, dotted: str) -> Value:
        """What a dotted name of an annotation means: classes, or what an alias or a type variable stands for."""
        first, *rest = dotted.split(".")
        binding = self._bindings.name(place.path, place.scope, first, in_class=place.in_class)
        value = self._type_of(binding, f"builtins.{first}", not rest)
        for part in rest:
            value = self.attribute(value, part)
        return value

    def _type_of(self, binding: Binding, otherwise: str, is_last: bool) -> Value:
        symbols = [self._symbols[id] for id in binding.targets if id in self._symbols]
        aliases = [s for s in symbols if s.kind in (SymbolKind.CONSTANT, SymbolKind.FIELD) and s.value[:1] == "="]
        if is_last and aliases:
            return tuple(TypeOf(self.of(Place(s.path, s.parent, True), s.value)) for s in aliases)
        return self.of_binding(binding, otherwise)

    def thing(self, name: str, args: tuple[Value, ...]) -> Value:
        """An instance of a library's class."""
        return thing_of(name, args)


_KEEPING = frozenset(
    {"overload", "wraps", "staticmethod", "classmethod", "abstractmethod", "contextmanager", "asynccontextmanager"}
)


def _is_dotted(text: str) -> bool:
    return text.replace(".", "").isidentifier()
