"""References of Python files -> links. What a receiver is decides; where nobody can tell, the member's name does.

Variants of one definition (an `if` and its `else`) are all targets of one RESOLVED link. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from agentctx.repo.bindings import ACCESSORS, EXTERNAL, UNKNOWN, Binding, Bindings
from agentctx.repo.builtin_members import BUILTIN_MEMBERS, OBJECT_MEMBERS
from agentctx.repo.field_types import class_name, type_of_value
from agentctx.repo.fixtures import Fixtures
from agentctx.repo.hierarchy import Hierarchy
from agentctx.repo.modules import Module
from agentctx.source import FileSyntax, Import, Link, Reference, Resolution, Role, Symbol, SymbolKind

MAX_CANDIDATES = 8
_FIRST_PARAMETER = re.compile(r"def \w+(?:\[.*?\])?\(\s*(\w+)")
_WORD = re.compile(r"\w+")
_TELLS_NOTHING = frozenset({"Any", "object", "Self", "Union", "Optional", "type", "Type", "TypeVar", "Annotated"})
_MEMBERS = (SymbolKind.METHOD, SymbolKind.FIELD)
_FUNCTIONS = (SymbolKind.FUNCTION, SymbolKind.METHOD)


@dataclass(frozen=True, slots=True)
class Value:
    """What a receiver is: a module, (an instance of) repository classes, or something external."""

    module: Module | None = None
    classes: tuple[str, ...] = ()
    external: bool = False


_EXTERNAL_VALUE = Value(external=True)


class PythonResolver:
    """Resolves files one by one; the answer for a file depends on all files, never on their order."""

    def __init__(self, files: Iterable[FileSyntax]) -> None:
        self.bindings = Bindings(files)
        self.hierarchy = Hierarchy(self.bindings)
        self._symbols = self.bindings.symbols
        self._fixtures = Fixtures(self.bindings, self.hierarchy)
        self._by_name = self._index_members()
        self._starts: frozenset[int] = frozenset()
        self._in_headers: frozenset[int] = frozenset()
        self._types: dict[tuple[str, str | None, str, bool], Value | None] = {}
        self._guesses: dict[tuple[str, str], Binding] = {}

    def _index_members(self) -> dict[str, list[str]]:
        by_name: dict[str, list[str]] = {}
        for table in self.bindings.tables.values():
            for parent, names in table.members.items():
                if parent is not None and self._symbols[parent].kind is SymbolKind.CLASS:
                    for name, ids in names.items():
                        by_name.setdefault(name, []).extend(i for i in ids if self._symbols[i].kind in _MEMBERS)
        return by_name

    def links(self, file: FileSyntax) -> Iterator[Link]:
        """The links of a file: one per reference and imported name, and one more where a class is called."""
        # A receiver's first name that is a local variable has no reference of its own.
        self._starts = frozenset(ref.span.start for ref in file.references if ref.receiver is None)
        self._in_headers = frozenset(self._headers(file.references))
        for reference in file.references:
            binding = self._resolve(reference)
            yield _link(reference, binding)
            if reference.role is Role.CALL and binding.state is Resolution.RESOLVED:
                yield from self._construction(reference, binding.targets)
        for item in file.imports:
            yield self._import_link(file, item)

    def _resolve(self, reference: Reference) -> Binding:
        if reference.role is Role.FIXTURE:
            return self._fixtures.resolve(reference)
        if reference.receiver is None:
            scope, in_class = self._place(reference)
            return self.bindings.name(reference.path, scope, reference.name, in_class=in_class)
        return self._attribute(reference, reference.receiver)

    def _place(self, reference: Reference) -> tuple[str | None, bool]:
        """The scope where names are looked up: decorators, defaults and annotations belong to the one around."""
        scope = self._symbols.get(reference.scope or "")
        if scope is None:
            return None, False
        if reference.unit == scope.header and reference.span.start in self._in_headers:
            return scope.parent, True
        return scope.id, scope.kind is SymbolKind.CLASS

    def _headers(self, references: Iterable[Reference]) -> Iterator[int]:
        """Where the references start that stand in the header of their scope: before its name or in its signature.

        A short definition is one unit, header and body. As often as the signature has a word, so many of the first
        references of that name are the signature's.
        """
        words: dict[str, Counter[str]] = {}
        for reference in references:
            scope = self._symbols.get(reference.scope or "")
            if scope is None or reference.unit != scope.header:
                continue
            if reference.span.start < scope.name_span.start:
                yield reference.span.start
                continue
            if scope.id not in words:
                words[scope.id] = Counter(_WORD.findall(scope.signature.partition(scope.name)[2]))
            left = words[scope.id]
            if left[reference.name] > 0:
                left[reference.name] -= 1
                yield reference.span.start
            elif reference.role is Role.TYPE and scope.signature.endswith("..."):  # it was shortened
                yield reference.span.start

    # ------------------------------------------------------------ attributes

    def _attribute(self, reference: Reference, receiver: str) -> Binding:
        if receiver == "super()":
            return self._super(reference)
        if receiver == "?":
            return self._guess(reference)
        if reference.role is Role.DECORATOR and reference.name in ACCESSORS:
            return EXTERNAL  # `@x.setter`
        first, *rest = receiver.split(".")
        value, via = self._first(reference, first, len(receiver))
        for part in rest:
            value = self._step(value, part) if value is not None else None
        if value is None:
            return self._guess(reference)
        binding = self._member(value, reference)
        return binding if binding.via == via else Binding(binding.state, binding.targets, binding.module, via)

    def _first(self, reference: Reference, first: str, length: int) -> tuple[Value | None, int | None]:
        """What the first name of a receiver is, and the import that brings it in."""
        if reference.receiver_type is not None:
            return self._type(reference.path, *self._place(reference), reference.receiver_type), None
        is_local = reference.span.start - length - 1 not in self._starts
        cls = self._class_around(reference, first) if is_local else None
        if cls is not None:
            return Value(classes=(cls,)), None
        if is_local:
            return None, None
        scope, in_class = self._place(reference)
        binding = self.bindings.name(reference.path, scope, first, in_class=in_class)
        return self._value(binding), binding.via

    def _class_around(self, reference: Reference, receiver: str | None = None) -> str | None:
        """The class of the method around a reference, also from functions nested in it.

        With `receiver` only where that is the method's first parameter, and so an instance or the class.
        """
        symbol = self._symbols.get(reference.scope or "")
        while symbol is not None and symbol.kind is not SymbolKind.METHOD:
            symbol = self._symbols.get(symbol.parent or "")
        if symbol is None or receiver is None:
            return symbol.parent if symbol is not None else None
        first = _FIRST_PARAMETER.search(symbol.signature)
        is_bound = first is not None and first[1] == receiver and "staticmethod" not in symbol.decorators
        return symbol.parent if is_bound else None

    def _value(self, binding: Binding) -> Value | None:
        if binding.module is not None:
            return Value(module=binding.module)
        if binding.state is Resolution.EXTERNAL:
            return _EXTERNAL_VALUE
        return self._value_of(binding.targets)

    def _value_of(self, ids: tuple[str, ...]) -> Value | None:
        """Classes themselves, else the class of the constant, field or property."""
        symbols = [self._symbols[id] for id in ids if id in self._symbols]
        classes = tuple(s.id for s in symbols if s.kind is SymbolKind.CLASS)
        if classes:
            return Value(classes=classes)
        found = [self._declared(symbol) for symbol in symbols]
        return found[0] if found and all(value == found[0] for value in found) else None

    def _declared(self, symbol: Symbol) -> Value | None:
        init = (
            self.hierarchy.own(symbol.parent, "__init__") if symbol.kind is SymbolKind.FIELD and symbol.parent else ()
        )
        written = type_of_value(symbol, self._symbols[init[0]] if init else None)
        return self._type(symbol.path, symbol.parent, True, written) if written is not None else None

    def _type(self, path: str, scope: str | None, in_class: bool, written: str) -> Value | None:
        """What `x: written` or `x = written()` is. A function stands for what it says that it returns."""
        key = (path, scope, written, in_class)
        if key not in self._types:
            self._types[key] = None  # a function that returns itself
            self._types[key] = self._find_type(path, scope, in_class, written)
        return self._types[key]

    def _find_type(self, path: str, scope: str | None, in_class: bool, written: str) -> Value | None:
        first, *rest = written.split(".")
        binding = self.bindings.name(path, scope, first, in_class=in_class)
        for part in rest:
            binding = self._export(binding, part)
        last = written.rpartition(".")[2]
        if binding.state is Resolution.EXTERNAL and binding.module is None:
            # What a library's function returns may well be ours; an instance of its class is not.
            is_class = last[:1].isupper() or last in (
                "str",
                "int",
                "float",
                "dict",
                "list",
                "set",
                "tuple",
                "bytes",
                "bool",
            )
            return _EXTERNAL_VALUE if is_class and last not in _TELLS_NOTHING else None
        symbols = [self._symbols[id] for id in binding.targets if id in self._symbols]
        classes = tuple(s.id for s in symbols if s.kind is SymbolKind.CLASS)
        if classes:
            return Value(classes=classes)
        function = next((s for s in symbols if s.kind in _FUNCTIONS and "->" in s.signature), None)
        returned = class_name(function.signature.rpartition("->")[2]) if function is not None else None
        return self._type(function.path, function.parent, True, returned) if function and returned else None

    def _export(self, binding: Binding, part: str) -> Binding:
        """The attribute of what a dotted type name starts with."""
        if binding.module is not None:
            return self.bindings.export(binding.module, part)
        if binding.state is Resolution.EXTERNAL:
            return EXTERNAL
        ids = tuple(dict.fromkeys(id for owner in binding.targets for id in self._members(owner, part)))
        return Binding(Resolution.RESOLVED, ids) if ids else UNKNOWN

    def _step(self, value: Value, part: str) -> Value | None:
        if value.module is not None:
            return self._value(self.bindings.export(value.module, part))
        if value.external:
            return value
        ids = tuple(dict.fromkeys(id for cls in value.classes for id in self._members(cls, part)))
        if ids:
            return self._value_of(ids)
        return None

    def _members(self, cls: str, name: str) -> tuple[str, ...]:
        symbol = self._symbols.get(cls)
        return self.hierarchy.member(cls, name) if symbol is not None and symbol.kind is SymbolKind.CLASS else ()

    # ------------------------------------------------------------ members

    def _member(self, value: Value, reference: Reference) -> Binding:
        if value.module is not None:
            return self.bindings.export(value.module, reference.name)
        if value.external:
            return EXTERNAL
        name = reference.name
        found = [id for cls in value.classes for id in self.hierarchy.member(cls, name)]
        if found:
            return Binding(Resolution.RESOLVED, tuple(found))
        below = {
            id
            for cls in value.classes
            for sub in self.hierarchy.subclasses(cls)
            for id in self.hierarchy.own(sub, name)
        }
        if below:
            return Binding(Resolution.AMBIGUOUS, self._nearest(below, reference.path))
        if name in OBJECT_MEMBERS or any(self.hierarchy.is_opaque(cls) for cls in value.classes):
            return EXTERNAL
        return UNKNOWN

    def _super(self, reference: Reference) -> Binding:
        cls = self._class_around(reference)
        if cls is None:
            return self._guess(reference)
        found = self.hierarchy.member(cls, reference.name, skip_own=True)
        if found:
            return Binding(Resolution.RESOLVED, tuple(sorted(found)))
        is_foreign = self.hierarchy.is_opaque(cls) or reference.name in OBJECT_MEMBERS
        if is_foreign:
            return EXTERNAL
        # A mixin's `super()` goes to a class that only its users know.
        guess = self._guess(reference)
        others = tuple(id for id in guess.targets if self._symbols[id].parent != cls)
        return Binding(Resolution.AMBIGUOUS, others) if others else EXTERNAL

    def _guess(self, reference: Reference) -> Binding:
        """By the name alone: unique and not a name of a builtin type's member, or ambiguous."""
        key = (reference.path, reference.name)
        if key not in self._guesses:
            self._guesses[key] = self._by_member_name(*key)
        return self._guesses[key]

    def _by_member_name(self, path: str, name: str) -> Binding:
        tables = self.bindings.tables
        candidates = self._by_name.get(name, ())
        if not tables[path].file.is_test:
            # Code doesn't call what only tests define.
            candidates = [id for id in candidates if not tables[self._symbols[id].path].file.is_test]
        if not candidates or name in OBJECT_MEMBERS:
            return EXTERNAL
        owners = {self._symbols[id].parent for id in candidates}
        is_certain = len(owners) == 1 and name not in BUILTIN_MEMBERS
        state = Resolution.RESOLVED if is_certain else Resolution.AMBIGUOUS
        return Binding(state, self._nearest(candidates, path))

    def _nearest(self, ids: Iterable[str], path: str) -> tuple[str, ...]:
        """At most `MAX_CANDIDATES`: of the same file, then of the same folder, then others; sorted."""
        folder = path.rpartition("/")[0]

        def distance(id: str) -> tuple[bool, bool, str]:
            there = self._symbols[id].path
            return there != path, there.rpartition("/")[0] != folder, id

        return tuple(sorted(sorted(ids, key=distance)[:MAX_CANDIDATES]))

    # ------------------------------------------------------------ further links

    def _construction(self, reference: Reference, targets: tuple[str, ...]) -> Iterator[Link]:
        """Calling a class calls its `__init__` and `__new__`."""
        classes = [id for id in targets if id in self._symbols and self._symbols[id].kind is SymbolKind.CLASS]
        made = {id for cls in classes for name in ("__init__", "__new__") for id in self.hierarchy.member(cls, name)}
        if made:
            binding = Binding(Resolution.RESOLVED, tuple(sorted(made)))
            yield _link(replace(reference, name="__init__"), binding)

    def _import_link(self, file: FileSyntax, item: Import) -> Link:
        """An imported name refers to what it names; the link carries no `via`, it is the import itself."""
        reference = Reference(
            path=item.path,
            span=file.units[item.unit].span,
            line=item.line,
            name=item.name or item.module,
            role=Role.IMPORT,
            scope=item.scope,
            receiver="." * item.level + item.module if item.name is not None else None,
            unit=item.unit,
        )
        named = self._named(item)
        return _link(reference, Binding(named.state, named.targets))

    def _named(self, item: Import) -> Binding:
        """What the import names: all of `a.b.c`, though it binds `a` only."""
        if item.name is not None:
            return self.bindings.imported(item)
        module, known = self.bindings.source(item)
        if module is None:
            return UNKNOWN if known else EXTERNAL
        return Binding(
            Resolution.RESOLVED if module.path else Resolution.EXTERNAL, (module.path,) if module.path else ()
        )


def _link(reference: Reference, binding: Binding) -> Link:
    targets = binding.targets if len(binding.targets) < 2 else tuple(sorted(binding.targets))
    return Link(reference, binding.state, targets, binding.via)
