"""References of all languages but Python -> links. What a receiver is decides; else the member's name.

One engine for all families; what differs stands in their `Rules`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from agentctx.repo.resolvers.exports import Doors, Found
from agentctx.repo.resolvers.names import Names
from agentctx.repo.resolvers.rules import Rules
from agentctx.repo.resolvers.tables import Ids, Tables
from agentctx.repo.resolvers.values import CALLABLE, NO_VALUE, Value, Values, split
from agentctx.source import FileSyntax, Import, Link, Reference, Resolution, Role, SymbolKind

MAX_CANDIDATES = 8
_HOLDERS = (SymbolKind.CONSTANT, SymbolKind.FIELD)


@dataclass(frozen=True, slots=True)
class Answer:
    state: Resolution
    targets: Ids = ()
    via: int | None = None
    handed: Doors = ()


_EXTERNAL = Answer(Resolution.EXTERNAL)
_UNKNOWN = Answer(Resolution.UNKNOWN)


class CapturedResolver:
    """Resolves the files of one family; the answer for a file depends on all of them, never on their order."""

    def __init__(self, files: Iterable[FileSyntax], rules: type[Rules], configs: Mapping[str, bytes]) -> None:
        known = {file.path: file for file in files}
        self.tables = Tables(known, open_enums=rules.open_enums)
        self.rules = rules(known, configs)
        self.names = Names(self.tables, self.rules)
        self.classes = self.names.classes
        self.values = Values(self.names)
        self._receivers: dict[tuple[str, str | None, str, str | None], Value] = {}
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
            named = self.names.name(reference.path, reference.scope, reference.name)
            answer = self._answer(self._fitted(named, reference.role))
            return self._called(reference, self._implied(reference) if answer is _UNKNOWN else answer)
        if reference.receiver == "?":
            return self._guess(reference)
        first, rest = split(reference.receiver)
        if first in self.rules.super_names:
            return self._super(reference)
        key = (reference.path, reference.scope, reference.receiver, reference.receiver_type)
        if key not in self._receivers:
            value = self._start(reference, first)
            for part in rest:
                value = self.values.step(value, part) if value else value
            self._receivers[key] = value
        value = self._receivers[key]
        return self._called(reference, self._member(value, reference)) if value else self._guess(reference)

    def _implied(self, reference: Reference) -> Answer:
        """A name that nothing around a use has may be a member of what a block is run on."""
        if not self.rules.guesses_names or reference.role not in (Role.CALL, Role.NAME):
            return _UNKNOWN
        guess = self._guess(reference)
        if not guess.targets:
            return _UNKNOWN
        return replace(guess, state=Resolution.AMBIGUOUS)

    def _called(self, reference: Reference, answer: Answer) -> Answer:
        """With the functions and types that called names are given (`exports.a = a`, `const f = g`)."""
        if reference.role is not Role.CALL or answer.state is not Resolution.RESOLVED:
            return answer
        behind: list[str] = []
        for id in answer.targets:
            symbol = self.tables.symbols.get(id)
            if symbol is not None and symbol.kind in _HOLDERS and symbol.type is None and symbol.value.startswith("="):
                value = self.values.value(symbol.path, symbol.parent, symbol.value[1:])
                behind += [one for one in value.ids if self.tables.symbols[one].kind in (*CALLABLE, SymbolKind.CLASS)]
        if not behind:
            return answer
        return replace(answer, targets=tuple(dict.fromkeys((*answer.targets, *behind)))[:MAX_CANDIDATES])

    def _answer(self, found: Found) -> Answer:
        if len(found.ids) == 1:
            return Answer(Resolution.RESOLVED, found.ids, found.via, found.handed)
        if found.ids:
            owners = {(self.tables.symbols[id].path, self.tables.symbols[id].qualname) for id in found.ids}
            names = {qualname for _, qualname in owners}
            # Several parts of one definition (overloads, declarations and their definition) are one target.
            state = Resolution.RESOLVED if len(names) == 1 else Resolution.AMBIGUOUS
            return Answer(state, found.ids[:MAX_CANDIDATES], found.via, found.handed)
        if found.space is not None:
            return Answer(Resolution.RESOLVED, found.space.files[:MAX_CANDIDATES], found.via, found.handed)
        return Answer(Resolution.EXTERNAL, via=found.via) if found.external else _UNKNOWN

    # ------------------------------------------------------------ receivers

    def _start(self, reference: Reference, first: str) -> Value:
        path, scope = reference.path, reference.scope
        told = reference.receiver_type
        if told == "?":
            return NO_VALUE
        if told is not None and told.startswith("="):
            return self.values.value(path, scope, told[1:])
        if told is not None:
            return self.values.instance(path, scope, told)
        return self.values.value(path, scope, first)

    # ------------------------------------------------------------ members

    def _member(self, value: Value, reference: Reference) -> Answer:
        name = reference.name
        brought = self._brought(reference) if not value.ids else ()
        if brought:
            return Answer(Resolution.RESOLVED, brought)
        if value.external or (name in self.rules.constructors and reference.role is Role.ATTRIBUTE):
            return Answer(Resolution.EXTERNAL, via=value.via)
        made = self.tables.classes(value.ids) if name in self.rules.makers and reference.role is Role.CALL else ()
        ids = self.values.members(value, name) or made
        if ids:
            return self._answer(Found(self._fitting(ids, reference.role), via=value.via))
        if value.space is not None:
            found = self.names.inside(Found(space=value.space, via=value.via), name)
            return self._answer(found) if found else self._missing(name)
        owners = (*value.instance, *value.ids)
        below = [
            id
            for cls in owners
            if self._has_subclasses(cls)
            for sub in self.classes.subclasses(cls)
            for id in self.classes.own(sub, name)
        ]
        if below:
            return Answer(Resolution.AMBIGUOUS, self._nearest(below, reference.path), value.via)
        extending = self._extending(owners, name)
        if extending:
            return self._answer(Found(self._nearest(extending, reference.path)))
        is_type = any(self._has_members(id) for id in owners)
        if name in self.rules.builtin_members or name in self.rules.passthrough or name in self.rules.makers:
            return _EXTERNAL
        if not is_type or any(self._has_more(cls) for cls in owners if self._is_class(cls)):
            if is_type:
                return _EXTERNAL
            guess = self._guess(reference)
            # What has the member is known, and has it from elsewhere (`{...others}`): a name alone proves nothing.
            is_weak = self.rules.objects and guess.state is Resolution.RESOLVED
            return replace(guess, state=Resolution.AMBIGUOUS) if is_weak else guess
        return self._missing(name)

    def _has_subclasses(self, id: str) -> bool:
        return self._is_class(id) and self.tables.symbols[id].form != "namespace"

    def _brought(self, reference: Reference) -> Ids:
        """The extension functions of a name that an import brings, also by another name (`import a.f as g`)."""
        item = self.tables.imports[reference.path].get(reference.name)
        ids = self.names.imported(item).ids if item is not None and item.name is not None else ()
        return tuple(id for id in ids if self.rules.extends(self.tables.symbols[id]) is not None)

    def _extending(self, owners: Ids, name: str) -> Ids:
        """Functions that add the member to one of the types, or else to one that we don't know (`T`)."""
        adding = [(id, self.rules.extends(self.tables.symbols[id])) for id in self.tables.members.get(name, ())]
        if not any(type_ for _, type_ in adding):
            return ()
        names = {
            self.tables.symbols[one].name for cls in owners if self._is_class(cls) for one in self.classes.order(cls)
        }
        exact = tuple(id for id, type_ in adding if type_ in names)
        return exact or tuple(id for id, type_ in adding if type_ is not None and type_ not in self.tables.names)

    def _missing(self, name: str) -> Answer:
        """For a member that isn't where it should be: what nobody defines here is made elsewhere."""
        return _UNKNOWN if name in self.tables.members or name in self.tables.names else _EXTERNAL

    def _fitted(self, found: Found, role: Role) -> Found:
        ids = self._fitting(found.ids, role)
        return found if ids == found.ids else replace(found, ids=ids)

    def _fitting(self, ids: Ids, role: Role) -> Ids:
        """Of a function and a value of one name the one that is called, or the one that isn't; types without `impl`."""
        if len(ids) < 2:
            return ids
        symbols = self.tables.symbols
        defined = [id for id in ids if symbols[id].form != "impl"] or list(ids)
        if role not in (Role.CALL, Role.ATTRIBUTE):
            return tuple(defined)
        kinds = (*CALLABLE, SymbolKind.CLASS)
        fitting = [id for id in defined if (symbols[id].kind in kinds) is (role is Role.CALL)]
        return tuple(fitting or defined)

    def _has_members(self, id: str) -> bool:
        """Whether we know what a definition has: an alias (`type T = ...`) says nothing."""
        symbol = self.tables.symbols[id]
        return symbol.kind is SymbolKind.CLASS and symbol.form != "type"

    def _has_more(self, cls: str) -> bool:
        """Whether a type has members from outside: enums have the language's; namespaces are open."""
        return self.tables.symbols[cls].form in ("enum", "namespace") or self.classes.is_opaque(cls)

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
            ids = tuple(id for id in ids if self.tables.symbols[id].kind in CALLABLE) or ids
        if not ids or reference.name in self.rules.builtin_members | self.rules.passthrough:
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
                    made += [one for one in ids if self.tables.symbols[one].kind in CALLABLE]
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
        found = self._fitted(found, Role.IMPORT)
        if item.name is None and found.space is not None:  # all of a module, whatever stands for it
            found = replace(found, ids=())
        answer = self._answer(found)
        # An import brings in all that has the name.
        state = Resolution.RESOLVED if answer.targets else answer.state
        return _link(reference, replace(answer, state=state, via=None))


def _link(reference: Reference, answer: Answer) -> Link:
    targets = answer.targets if len(answer.targets) < 2 else tuple(sorted(set(answer.targets)))
    return Link(reference, answer.state, targets, answer.via, answer.handed)
