"""Classes: bases, method resolution order, members, overrides, subclasses. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentctx.repo.bindings import Bindings
from agentctx.source import Resolution, Symbol, SymbolKind

PROPERTIES = ("property", "cached_property", "hybrid_property", "reify")
_TRANSPARENT = frozenset({"object", "ABC", "Protocol", "Generic"})  # external bases that add no members


@dataclass(frozen=True, slots=True)
class Bases:
    """The direct bases of a class: repository classes in order, and whether others exist that we can't see into."""

    ids: tuple[str, ...]
    opaque: bool


class Hierarchy:
    """Built once from all classes; every answer is deterministic and safe with cyclic bases."""

    def __init__(self, bindings: Bindings) -> None:
        self._bindings = bindings
        self.classes = tuple(sorted(s.id for s in bindings.symbols.values() if s.kind is SymbolKind.CLASS))
        self._bases = {id: self._find_bases(bindings.symbols[id]) for id in self.classes}
        self._orders: dict[str, tuple[str, ...]] = {}
        self._members: dict[tuple[str, str, bool], tuple[str, ...]] = {}
        self._direct: dict[str, list[str]] = {}
        for id in self.classes:
            for base in self._bases[id].ids:
                self._direct.setdefault(base, []).append(id)

    def _find_bases(self, symbol: Symbol) -> Bases:
        ids: list[str] = []
        opaque = False
        for written in symbol.bases:
            found = self.dotted(symbol.path, symbol.parent, written)
            opaque = opaque or (found is None and written.rpartition(".")[2] not in _TRANSPARENT)
            ids += [id for id in found or () if id != symbol.id]
        return Bases(tuple(dict.fromkeys(ids)), opaque)

    def dotted(self, path: str, scope: str | None, written: str) -> tuple[str, ...] | None:
        """The classes that a dotted name in a scope means; None where it isn't a repository class."""
        first, *rest = written.split(".")
        binding = self._bindings.name(path, scope, first, in_class=True)
        for part in rest:
            if binding.module is not None:
                binding = self._bindings.export(binding.module, part)
                continue
            nested = [id for owner in binding.targets for id in self.own(owner, part)]
            if not nested:
                return None
            return self._only_classes(nested) if part == rest[-1] else None
        return self._only_classes(binding.targets) if binding.state is Resolution.RESOLVED else None

    def _only_classes(self, ids: Iterable[str]) -> tuple[str, ...] | None:
        symbols = self._bindings.symbols
        return tuple(id for id in ids if id in symbols and symbols[id].kind is SymbolKind.CLASS) or None

    def own(self, cls: str, name: str) -> tuple[str, ...]:
        """The members that a class itself defines under a name."""
        symbol = self._bindings.symbols.get(cls)
        if symbol is None:
            return ()
        return self._bindings.tables[symbol.path].members.get(cls, {}).get(name, ())

    def bases(self, cls: str) -> Bases:
        return self._bases[cls]

    def order(self, cls: str) -> tuple[str, ...]:
        """The class and its repository bases, nearest first: Python's C3 order, depth first where C3 has none."""
        if cls in self._orders:
            return self._orders[cls]
        stack = [cls]
        open_: set[str] = set()
        while stack:
            at = stack[-1]
            if at in self._orders:
                stack.pop()
                continue
            open_.add(at)
            waiting = [b for b in self._bases[at].ids if b not in self._orders and b not in open_]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            # A base that is still open is its own ancestor: broken code, its order is left out.
            known = [self._orders[b] for b in self._bases[at].ids if b in self._orders]
            self._orders[at] = (at, *(id for id in _merge(known, self._bases[at].ids) if id != at))
        return self._orders[cls]

    def member(self, cls: str, name: str, *, skip_own: bool = False) -> tuple[str, ...]:
        """The first definition of a member along the order; before what is only assigned what is declared."""
        key = (cls, name, skip_own)
        found = self._members.get(key)
        if found is None:
            found = self._members[key] = self._member(self.order(cls)[int(skip_own) :], name)
        return found

    def _member(self, owners: Sequence[str], name: str) -> tuple[str, ...]:
        first: tuple[str, ...] = ()
        for owner in owners:
            found = self.own(owner, name)
            if found and not first:
                if not self._is_assigned(found):
                    return found
                first = found
            elif found and self._is_declared(found):
                # `self.x = ...` goes to the property, or has the type, that a base declares.
                return found
        return first

    def _is_assigned(self, ids: tuple[str, ...]) -> bool:
        symbol = self._bindings.symbols[ids[0]]
        return "instance" in symbol.traits and symbol.value[:1] != "{"

    def _is_declared(self, ids: tuple[str, ...]) -> bool:
        symbol = self._bindings.symbols[ids[0]]
        is_field = symbol.kind is SymbolKind.FIELD
        return symbol.value[:1] == "{" if is_field else symbol.kind is SymbolKind.METHOD and is_property(symbol)

    def is_opaque(self, cls: str) -> bool:
        """Whether some ancestor lies outside of the repository."""
        return any(self._bases[owner].opaque for owner in self.order(cls))

    def subclasses(self, cls: str) -> tuple[str, ...]:
        """All subclasses, transitively, sorted."""
        found: set[str] = set()
        stack = list(self._direct.get(cls, ()))
        while stack:
            at = stack.pop()
            if at not in found and at != cls:
                found.add(at)
                stack.extend(self._direct.get(at, ()))
        return tuple(sorted(found))

    def overridden(self, member: Symbol) -> tuple[str, ...]:
        """The members of the same name in the bases of a method's class, nearest first."""
        assert member.parent is not None
        found = (id for owner in self.order(member.parent)[1:] for id in self.own(owner, member.name))
        return tuple(dict.fromkeys(found))


def _merge(orders: Sequence[Sequence[str]], bases: Sequence[str]) -> list[str]:
    """C3: the first head that stands in no tail, again and again."""
    if len(orders) == 1:
        return list(orders[0])
    lists = [list(order) for order in orders] + [[base for base in bases if any(o[0] == base for o in orders)]]
    out: list[str] = []
    while lists := [items for items in lists if items]:
        tails = {id for items in lists for id in items[1:]}
        head = next((items[0] for items in lists if items[0] not in tails), lists[0][0])
        out.append(head)
        lists = [[id for id in items if id != head] for items in lists]
    return out


def is_property(symbol: Symbol) -> bool:
    """Whether reading the attribute calls the method."""
    return any(decorator.rpartition(".")[2] in PROPERTIES for decorator in symbol.decorators)
