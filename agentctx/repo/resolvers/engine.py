"""References of all languages but Python -> links. What a receiver is decides; else the member's name.

One engine for all families; what differs stands in their `Rules`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from agentctx.repo.resolvers.names import Found, Names
from agentctx.repo.resolvers.rules import Rules, Space
from agentctx.repo.resolvers.tables import Ids, Tables
from agentctx.source import FileSyntax, Import, Link, Reference, Resolution, Role, Symbol, SymbolKind

MAX_CANDIDATES = 8
MAX_STEPS = 12
_CALLABLE = (SymbolKind.FUNCTION, SymbolKind.METHOD)


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


@dataclass(frozen=True, slots=True)
class Answer:
    state: Resolution
    targets: Ids = ()
    via: int | None = None


_EXTERNAL = Answer(Resolution.EXTERNAL)
_UNKNOWN = Answer(Resolution.UNKNOWN)
_NO_VALUE = Value()


class CapturedResolver:
    """Resolves the files of one family; the answer for a file depends on all of them, never on their order."""

    def __init__(self, files: Iterable[FileSyntax], rules: type[Rules], configs: Mapping[str, bytes]) -> None:
        known = {file.path: file for file in files}
        self.tables = Tables(known)
        self.rules = rules(known, configs)
        self.names = Names(self.tables, self.rules)
        self.classes = self.names.classes
        self._values: dict[tuple[str, str | None, str], Value] = {}
        self._guessed: dict[tuple[bool, str, str], Answer] = {}

    def links(self, file: FileSyntax) -> Iterator[Link]:
        """The links of a file: one per reference and imported name, and one more where a class is called."""
        for reference in file.references:
            answer = self._resolve(reference)
            yield _link(reference, answer)
            if reference.role is Role.CALL and answer.state is Resolution.RESOLVED:
                yield from self._construction(reference, answer.targets)
        for item in file.imports:
            yield self._import_link(file, item)

    def _resolve(self, reference: Reference) -> Answer:
        if reference.receiver is None:
            if reference.name in self.rules.super_names:
                return self._super_call(reference)
            return self._answer(self.names.name(reference.path, reference.scope, reference.name))
        if reference.receiver == "?":
            return self._guess(reference)
        first, rest = split(reference.receiver)
        if first in self.rules.super_names:
            return self._super(reference)
        value = self._start(reference, first)
        for part in rest:
            value = self._step(value, part) if value else value
        return self._member(value, reference) if value else self._guess(reference)

    def _answer(self, found: Found) -> Answer:
        if found.ids:
            owners = {(self.tables.symbols[id].path, self.tables.symbols[id].qualname) for id in found.ids}
            names = {qualname for _, qualname in owners}
            # Several parts of one definition (overloads, declarations and their definition) are one target.
            state = Resolution.RESOLVED if len(names) == 1 else Resolution.AMBIGUOUS
            return Answer(state, found.ids[:MAX_CANDIDATES], found.via)
        if found.space is not None:
            return Answer(Resolution.RESOLVED, found.space.files[:MAX_CANDIDATES], found.via)
        return _EXTERNAL if found.external else _UNKNOWN

    # ------------------------------------------------------------ receivers

    def _start(self, reference: Reference, first: str) -> Value:
        path, scope = reference.path, reference.scope
        told = reference.receiver_type
        if told == "?":
            return _NO_VALUE
        if told is not None and told.startswith("="):
            return self.value(path, scope, told[1:])
        if told is not None:
            return self._instance(path, scope, told)
        return self.value(path, scope, first)

    def value(self, path: str, scope: str | None, chain: str) -> Value:
        """What a chain (`repo.chains`) is, seen from a scope."""
        key = (path, scope, chain)
        if key not in self._values:
            self._values[key] = _NO_VALUE  # a cycle
            first, rest = split(chain)
            value = self._first(path, scope, first)
            for part in rest[:MAX_STEPS]:
                value = self._step(value, part) if value else value
            self._values[key] = value
        return self._values[key]

    def _first(self, path: str, scope: str | None, first: str) -> Value:
        if first.startswith("<"):
            return self._instance(path, scope, first[1:-1])
        name, called = first.removesuffix("()"), first.endswith("()")
        if name in self.rules.own_names:
            return Value(instance=self.names.class_around(scope))
        if name in self.rules.super_names:
            around = self.names.class_around(scope)
            return Value(instance=tuple(base for cls in around for base in self.classes.bases(cls)[0]))
        if name in self.rules.type_names:
            around = self.names.class_around(scope)
            return Value(instance=around) if called else Value(ids=around)
        return self._typed(self.names.name(path, scope, name), called=called)

    def _instance(self, path: str, scope: str | None, written: str) -> Value:
        ids = self.names.type_ids(path, scope, written)
        if ids:
            return Value(instance=ids)
        return Value(external=self.names.dotted(path, scope, written).external)

    def _step(self, value: Value, part: str) -> Value:
        name, called = part.removesuffix("()"), part.endswith("()")
        if value.external:
            return value
        if value.space is not None:
            return self._typed(self.names.inside(Found(space=value.space, via=value.via), name), called=called)
        if called and name in self.rules.makers and self.tables.classes(value.ids):
            return Value(instance=self.tables.classes(value.ids), via=value.via)
        ids = self._members(value, name)
        if not ids:
            return value if name in self.rules.passthrough else _NO_VALUE
        return self._typed(Found(ids, via=value.via), called=called, around=value)

    def _members(self, value: Value, name: str) -> Ids:
        owners = (*value.instance, *value.ids)
        return tuple(dict.fromkeys(id for owner in owners for id in self.names.members_of(owner, name)))

    def _typed(self, found: Found, *, called: bool, around: Value = _NO_VALUE) -> Value:
        """The value of what was found, or of calling it."""
        if found.space is not None and called:
            main = self.names.export(found.space, "default")
            return self._typed(replace(main, via=found.via), called=True) if main.ids else _NO_VALUE
        if found.external or found.space is not None:
            return Value(space=found.space, external=found.external, via=found.via)
        ids: list[str] = []
        instance: list[str] = []
        external = False
        for id in found.ids:
            symbol = self.tables.symbols[id]
            if symbol.kind is SymbolKind.CLASS:
                (instance if called else ids).append(id)
            elif symbol.type is not None and (called or symbol.kind not in _CALLABLE):
                made = self._type_of(symbol, around)
                instance += made.instance
                external = external or made.external
            elif not called:
                ids.append(id)
        external = external and not ids and not instance
        return Value(tuple(dict.fromkeys(ids)), tuple(dict.fromkeys(instance)), external=external, via=found.via)

    def _type_of(self, symbol: Symbol, around: Value) -> Value:
        assert symbol.type is not None
        if around.instance and symbol.type in (self.rules.type_names | self.rules.own_names):
            return Value(instance=around.instance)
        return self._instance(symbol.path, symbol.id, symbol.type)

    # ------------------------------------------------------------ members

    def _member(self, value: Value, reference: Reference) -> Answer:
        name = reference.name
        if value.external:
            return _EXTERNAL
        if value.space is not None:
            found = self.names.inside(Found(space=value.space, via=value.via), name)
            return self._answer(found) if found else _UNKNOWN
        ids = self._members(value, name)
        if ids:
            return replace(self._answer(Found(ids)), via=value.via)
        owners = (*value.instance, *value.ids)
        below = [id for cls in owners for sub in self.classes.subclasses(cls) for id in self.classes.own(sub, name)]
        if below:
            return Answer(Resolution.AMBIGUOUS, self._nearest(below, reference.path), value.via)
        is_type = any(self._has_members(id) for id in owners)
        if name in self.rules.builtin_members or name in self.rules.passthrough or name in self.rules.makers:
            return _EXTERNAL
        if not is_type or any(self.classes.is_opaque(cls) for cls in owners if self._is_class(cls)):
            return self._guess(reference) if not is_type else _EXTERNAL
        return _UNKNOWN

    def _has_members(self, id: str) -> bool:
        """Whether we know what a definition has: an alias (`type T = ...`) says nothing."""
        symbol = self.tables.symbols[id]
        return symbol.kind is SymbolKind.CLASS and symbol.form != "type"

    def _is_class(self, id: str) -> bool:
        return self.tables.symbols[id].kind is SymbolKind.CLASS

    def _super(self, reference: Reference) -> Answer:
        around = self.names.class_around(reference.scope)
        ids = tuple(id for cls in around for id in self.classes.member(cls, reference.name, skip_own=True))
        if ids:
            return Answer(Resolution.RESOLVED, tuple(dict.fromkeys(ids)))
        return _EXTERNAL if around else self._guess(reference)

    def _super_call(self, reference: Reference) -> Answer:
        """`super(...)` calls the constructor of the base."""
        around = self.names.class_around(reference.scope)
        bases = tuple(base for cls in around for base in self.classes.bases(cls)[0])
        return Answer(Resolution.RESOLVED, bases) if bases else _EXTERNAL

    def _guess(self, reference: Reference) -> Answer:
        """By the member's name alone: RESOLVED where one type has it and no library type does."""
        file = self.tables.files[reference.path]
        key = (file.is_test, reference.path, reference.name)
        if key not in self._guessed:
            self._guessed[key] = self._find_guess(reference, in_test=file.is_test)
        return self._guessed[key]

    def _find_guess(self, reference: Reference, *, in_test: bool) -> Answer:
        ids = self.tables.members.get(reference.name, ())
        if not in_test:
            ids = tuple(id for id in ids if not self.tables.files[self.tables.symbols[id].path].is_test)
        if reference.role is Role.CALL:
            ids = tuple(id for id in ids if self.tables.symbols[id].kind in _CALLABLE) or ids
        if not ids or reference.name in self.rules.builtin_members:
            return _EXTERNAL if not ids else Answer(Resolution.AMBIGUOUS, self._nearest(ids, reference.path))
        owners = {self.tables.symbols[id].qualname.rpartition(".")[0] for id in ids}
        state = Resolution.RESOLVED if len(owners) == 1 and reference.role is Role.CALL else Resolution.AMBIGUOUS
        return Answer(state, self._nearest(ids, reference.path))

    def _nearest(self, ids: Iterable[str], path: str) -> Ids:
        """At most `MAX_CANDIDATES`: of the same file, then of the same folder, then others; sorted."""
        folder = path.rpartition("/")[0]

        def distance(id: str) -> tuple[bool, bool, str]:
            there = self.tables.symbols[id].path
            return there != path, there.rpartition("/")[0] != folder, id

        return tuple(sorted(sorted(set(ids), key=distance)[:MAX_CANDIDATES]))

    # ------------------------------------------------------------ further links

    def _construction(self, reference: Reference, targets: Ids) -> Iterator[Link]:
        """Calling a class calls its constructor."""
        made: list[str] = []
        for id in targets:
            symbol = self.tables.symbols.get(id)
            if symbol is not None and symbol.kind is SymbolKind.CLASS:
                for name in sorted(self.rules.constructors | {symbol.name}):
                    ids = self.classes.member(id, name)
                    made += [one for one in ids if self.tables.symbols[one].kind in _CALLABLE]
        if made:
            name = self.tables.symbols[made[0]].name
            owner = f"{reference.receiver}.{reference.name}" if reference.receiver else reference.name
            named = replace(reference, name=name, receiver=owner)
            yield _link(named, Answer(Resolution.RESOLVED, tuple(dict.fromkeys(made))))

    def _import_link(self, file: FileSyntax, item: Import) -> Link:
        reference = Reference(
            path=item.path,
            span=file.units[item.unit].span,
            line=item.line,
            name=item.name if item.name not in (None, "*") else item.module,
            role=Role.IMPORT,
            scope=item.scope,
            receiver=item.module if item.name is not None else None,
            unit=item.unit,
        )
        found = self.names.imported(item)
        return _link(reference, replace(self._answer(found), via=None))


def split(chain: str) -> tuple[str, list[str]]:
    """`<a.B>.c.d()` -> ('<a.B>', ['c', 'd()'])."""
    if chain.startswith("<"):
        head, _, tail = chain.partition(">")
        return head + ">", [part for part in tail.split(".") if part]
    first, *rest = chain.split(".")
    return first, rest


def _link(reference: Reference, answer: Answer) -> Link:
    targets = answer.targets if len(answer.targets) < 2 else tuple(sorted(set(answer.targets)))
    return Link(reference, answer.state, targets, answer.via)
