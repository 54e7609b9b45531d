"""References of Python files -> links. What a receiver is decides; where nobody can tell, the member's name does.

Variants of one definition (an `if` and its `else`) are all targets of one RESOLVED link. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from agentctx.repo.atoms import Instance, Value
from agentctx.repo.bindings import Bindings
from agentctx.repo.builtin_members import OBJECT_MEMBERS
from agentctx.repo.fixtures import Fixtures
from agentctx.repo.guesses import Guesses
from agentctx.repo.headers import header_starts
from agentctx.repo.hierarchy import Hierarchy
from agentctx.repo.members import Members
from agentctx.repo.name_tables import ACCESSORS, EXTERNAL, UNKNOWN, Binding
from agentctx.repo.values import Place, Values
from agentctx.source import FileSyntax, Import, Link, Reference, Resolution, Role, Symbol, SymbolKind

_FIRST_PARAMETER = re.compile(r"def \w+(?:\[.*?\])?\(\s*(\w+)")


class PythonResolver:
    """Resolves files one by one; the answer for a file depends on all files, never on their order."""

    def __init__(self, files: Iterable[FileSyntax]) -> None:
        self.bindings = Bindings(files)
        self.hierarchy = Hierarchy(self.bindings)
        self._symbols = self.bindings.symbols
        self._values = Values(self.bindings, self.hierarchy)
        self._fixtures = Fixtures(self.bindings, self.hierarchy, self._values)
        self._guesses = Guesses(self.bindings)
        self._members = Members(self.bindings, self.hierarchy, self._guesses)
        # What names at the start of receivers are, in the file at hand.
        self._firsts: dict[tuple[str | None, bool, str], tuple[Value, int | None]] = {}
        self._locals: dict[tuple[str | None, str], Value] = {}
        self._starts: frozenset[int] = frozenset()
        self._in_headers: frozenset[int] = frozenset()

    def links(self, file: FileSyntax) -> Iterator[Link]:
        """The links of a file: one per reference and imported name, and one more where a class is called."""
        self._firsts, self._locals = {}, {}
        # A receiver's first name that is a local variable has no reference of its own.
        self._starts = frozenset(ref.span.start for ref in file.references if ref.receiver is None)
        self._in_headers = frozenset(header_starts(file.references, self._symbols))
        call, resolved = Role.CALL, Resolution.RESOLVED
        for reference in file.references:
            binding = self._resolve(reference)
            yield _link(reference, binding)
            if reference.role is call and binding.state is resolved:
                yield from self._construction(reference, binding.targets)
        for item in file.imports:
            yield self._import_link(file, item)
        for symbol in file.symbols if file.is_test else ():
            if symbol.is_test and symbol.kind is not SymbolKind.CLASS:
                yield from self._unasked(symbol)

    def _resolve(self, reference: Reference) -> Binding:
        if reference.role is Role.FIXTURE:
            return self._fixtures.resolve(reference)
        if reference.receiver is None:
            return self._name(reference)
        return self._attribute(reference, reference.receiver)

    def _name(self, reference: Reference) -> Binding:
        scope, in_class = self._place(reference)
        binding = self.bindings.name(reference.path, scope, reference.name, in_class=in_class)
        if in_class and binding.targets and self._is_later(reference, scope, binding.targets):
            return self.bindings.name(reference.path, scope, reference.name, in_class=False)
        return binding

    def _is_later(self, reference: Reference, scope: str | None, targets: tuple[str, ...]) -> bool:
        """Whether a class body names what it defines only there or later: `list: list`, `@property def property`.

        An annotation may name what comes later in the class.
        """
        symbols = [self._symbols[id] for id in targets if id in self._symbols]
        at, is_type = reference.span.start, reference.role is Role.TYPE
        return bool(symbols) and all(
            s.parent == scope and s.span.end > at and (s.span.start <= at or not is_type) for s in symbols
        )

    def _place(self, reference: Reference) -> tuple[str | None, bool]:
        """The scope where names are looked up: decorators, defaults and annotations belong to the one around."""
        scope = self._symbols.get(reference.scope or "")
        if scope is None:
            return None, False
        if reference.unit == scope.header and reference.span.start in self._in_headers:
            return scope.parent, True
        return scope.id, scope.kind is SymbolKind.CLASS

    # ------------------------------------------------------------ attributes

    def _attribute(self, reference: Reference, receiver: str) -> Binding:
        if receiver == "super()":
            return self._super(reference)
        if reference.role is Role.DECORATOR and reference.name in ACCESSORS:
            return EXTERNAL  # `@x.setter`
        value, via = self._receiver(reference, receiver)
        binding = self._members.of(value, reference.name, reference.path) if value else None
        if reference.role is Role.STORE and (binding is None or binding.state is not Resolution.RESOLVED):
            return EXTERNAL  # what is assigned to needn't have been there
        if reference.role is Role.STORE and binding is not None:
            binding = replace(binding, targets=(*binding.targets, *self.bindings.setters(binding.targets)))
        if binding is None:
            return self._guesses.member(reference.path, reference.name)
        if binding.via == via:
            return binding
        return replace(binding, via=via)

    def _receiver(self, reference: Reference, receiver: str) -> tuple[Value, int | None]:
        """What a receiver is, and the import that brings its first name in."""
        if reference.receiver_type is not None:
            return self._values.of(Place(reference.path, *self._place(reference)), reference.receiver_type), None
        if receiver == "?":
            return (), None
        first, *rest = receiver.split(".")
        value, via = self._first(reference, first, len(receiver))
        for part in rest:
            value = self._values.attribute(value, part)
        return value, via

    def _first(self, reference: Reference, first: str, length: int) -> tuple[Value, int | None]:
        """What the first name of a receiver is, and the import that brings it in."""
        if reference.span.start - length - 1 in self._starts:
            scope, in_class = self._place(reference)
            key = (scope, in_class, first)
            found = self._firsts.get(key)
            if found is None:
                binding = self.bindings.name(reference.path, scope, first, in_class=in_class)
                found = self._firsts[key] = self._values.of_binding(binding, f"builtins.{first}"), binding.via
            return found
        local = (reference.scope, first)
        value = self._locals.get(local)
        if value is None:
            cls = self._class_around(reference, first)
            value = self._locals[local] = (Instance(cls),) if cls is not None else ()
        return value, None

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

    def _super(self, reference: Reference) -> Binding:
        cls = self._class_around(reference)
        if cls is None:
            return self._guesses.member(reference.path, reference.name)
        found = self.hierarchy.member(cls, reference.name, skip_own=True)
        if found:
            return Binding(Resolution.RESOLVED, found)
        if self.hierarchy.is_opaque(cls) or reference.name in OBJECT_MEMBERS:
            return EXTERNAL
        # A mixin's `super()` goes to a class that only its users know.
        guess = self._guesses.member(reference.path, reference.name)
        others = tuple(id for id in guess.targets if self._symbols[id].parent != cls)
        return Binding(Resolution.AMBIGUOUS, others) if others else EXTERNAL

    # ------------------------------------------------------------ further links

    def _construction(self, reference: Reference, targets: tuple[str, ...]) -> Iterator[Link]:
        """Calling a class calls its `__init__` and `__new__`."""
        classes = [id for id in targets if id in self._symbols and self._symbols[id].kind is SymbolKind.CLASS]
        made = {id for cls in classes for name in ("__init__", "__new__") for id in self.hierarchy.member(cls, name)}
        if made:
            binding = Binding(Resolution.RESOLVED, tuple(sorted(made)))
            owner = f"{reference.receiver}.{reference.name}" if reference.receiver else reference.name
            yield _link(replace(reference, name="__init__", receiver=owner), binding)

    def _unasked(self, test: Symbol) -> Iterator[Link]:
        """What runs for a test though it doesn't name it; such a link stands at the test's name."""
        for id in self._fixtures.unasked(test):
            name = self._symbols[id].name
            role, lines = Role.FIXTURE, test.lines
            reference = Reference(test.path, test.name_span, lines.start, name, role, test.id, None, test.header)
            yield _link(reference, Binding(Resolution.RESOLVED, (id,)))

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
        # A submodule can be imported from its package whatever that says; no import hands on to itself.
        handed = () if self._is_submodule(item, named) else named.handed
        others = tuple(door for door in handed if door != (item.path, item.unit))
        return _link(reference, replace(named, via=None, handed=others))

    def _is_submodule(self, item: Import, named: Binding) -> bool:
        package = self.bindings.source(item)[0] if item.name is not None and named.module is not None else None
        return package is not None and self.bindings.modules.child(package, item.name or "") == named.module

    def _named(self, item: Import) -> Binding:
        """What the import names: all of `a.b.c`, though it binds `a` only."""
        if item.name is not None:
            return self.bindings.imported(item)
        module, known = self.bindings.source(item)
        if module is None:
            return UNKNOWN if known else EXTERNAL
        return self.bindings.of_module(module)


def _link(reference: Reference, binding: Binding) -> Link:
    targets = binding.targets if len(binding.targets) < 2 else tuple(sorted(binding.targets))
    return Link(reference, binding.state, targets, binding.via, binding.handed)
