"""What a receiver is: a module, repository classes (or their instances), something external, or not known. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agentctx.repo.bindings import EXTERNAL, UNKNOWN, Binding, Bindings
from agentctx.repo.field_types import class_name, type_of_value
from agentctx.repo.hierarchy import Hierarchy
from agentctx.repo.modules import Module
from agentctx.source import Resolution, Symbol, SymbolKind

_TELLS_NOTHING = frozenset({"Any", "object", "Self", "Union", "Optional", "type", "Type", "TypeVar", "Annotated"})
_BUILTIN_TYPES = frozenset({"str", "bytes", "int", "float", "bool", "dict", "list", "set", "frozenset", "tuple"})
_FUNCTIONS = (SymbolKind.FUNCTION, SymbolKind.METHOD)


@dataclass(frozen=True, slots=True)
class Value:
    """Exactly one of the three is set."""

    module: Module | None = None
    classes: tuple[str, ...] = ()
    external: bool = False


_EXTERNAL_VALUE = Value(external=True)


class Values:
    """None stands for a value that nobody can tell. Types are remembered."""

    def __init__(self, bindings: Bindings, hierarchy: Hierarchy) -> None:
        self._bindings = bindings
        self._hierarchy = hierarchy
        self._symbols = bindings.symbols
        self._types: dict[tuple[str, str | None, bool, str], Value | None] = {}

    def of_binding(self, binding: Binding) -> Value | None:
        if binding.module is not None:
            return Value(module=binding.module)
        if binding.state is Resolution.EXTERNAL:
            return _EXTERNAL_VALUE
        return self._of_symbols(binding.targets)

    def of_type(self, path: str, scope: str | None, in_class: bool, written: str) -> Value | None:
        """What `x: written` or `x = written()` is, as seen in a scope."""
        key = (path, scope, in_class, written)
        if key not in self._types:
            binding = self._type_binding(path, scope, in_class, written)
            self._types[key] = self._of_type(binding, written) or self._returned(binding)
        return self._types[key]

    def attribute(self, value: Value, name: str) -> Value | None:
        """What `value.name` is."""
        if value.module is not None:
            return self.of_binding(self._bindings.export(value.module, name))
        if value.external:
            return value
        return self._of_symbols(tuple(dict.fromkeys(id for cls in value.classes for id in self._members(cls, name))))

    def _of_symbols(self, ids: tuple[str, ...]) -> Value | None:
        """Classes themselves, else the class of the constant, field or property."""
        symbols = [self._symbols[id] for id in ids if id in self._symbols]
        if classes := _classes(symbols):
            return Value(classes=classes)
        found = [self._declared(symbol) for symbol in symbols]
        return found[0] if found and all(value == found[0] for value in found) else None

    def _declared(self, symbol: Symbol) -> Value | None:
        is_field = symbol.kind is SymbolKind.FIELD and symbol.parent is not None
        init = self._hierarchy.own(symbol.parent, "__init__") if is_field and symbol.parent else ()
        written = type_of_value(symbol, self._symbols[init[0]] if init else None)
        return self.of_type(symbol.path, symbol.parent, True, written) if written is not None else None

    def _type_binding(self, path: str, scope: str | None, in_class: bool, written: str) -> Binding:
        first, *rest = written.split(".")
        binding = self._bindings.name(path, scope, first, in_class=in_class)
        for part in rest:
            binding = self._export(binding, part)
        return binding

    def _of_type(self, binding: Binding, written: str) -> Value | None:
        if binding.state is Resolution.EXTERNAL and binding.module is None:
            # What a library's function returns may well be ours; an instance of its class is not.
            last = written.rpartition(".")[2]
            is_class = last[:1].isupper() or last in _BUILTIN_TYPES
            return _EXTERNAL_VALUE if is_class and last not in _TELLS_NOTHING else None
        classes = _classes([self._symbols[id] for id in binding.targets if id in self._symbols])
        return Value(classes=classes) if classes else None

    def _returned(self, binding: Binding) -> Value | None:
        """A function stands for the class that it says that it returns."""
        symbols = [self._symbols[id] for id in binding.targets if id in self._symbols]
        function = next((s for s in symbols if s.kind in _FUNCTIONS and "->" in s.signature), None)
        if function is None:
            return None
        written = class_name(function.signature.rpartition("->")[2])
        if written is None:
            return None
        return self._of_type(self._type_binding(function.path, function.parent, True, written), written)

    def _export(self, binding: Binding, part: str) -> Binding:
        """The attribute of what a dotted type name starts with."""
        if binding.module is not None:
            return self._bindings.export(binding.module, part)
        if binding.state is Resolution.EXTERNAL:
            return EXTERNAL
        ids = tuple(dict.fromkeys(id for owner in binding.targets for id in self._members(owner, part)))
        return Binding(Resolution.RESOLVED, ids) if ids else UNKNOWN

    def _members(self, cls: str, name: str) -> tuple[str, ...]:
        symbol = self._symbols.get(cls)
        return self._hierarchy.member(cls, name) if symbol is not None and symbol.kind is SymbolKind.CLASS else ()


def _classes(symbols: list[Symbol]) -> tuple[str, ...]:
    return tuple(symbol.id for symbol in symbols if symbol.kind is SymbolKind.CLASS)
