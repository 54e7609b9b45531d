"""Types of one language family: parts, bases, members, overrides, implementations. Pure."""

from __future__ import annotations

from collections.abc import Callable

from agentctx.repo.resolvers.rules import Rules
from agentctx.repo.resolvers.tables import UNNAMED, Ids, Tables
from agentctx.source import Symbol, SymbolKind

TypeIds = Callable[[str, str | None, str], Ids]
MAX_ORDER = 64
_ABSTRACT = frozenset({"interface", "trait"})


class Classes:
    """`type_ids`: (path, scope, dotted name) -> the types that it means."""

    def __init__(self, tables: Tables, rules: Rules, type_ids: TypeIds) -> None:
        self._tables = tables
        self._rules = rules
        self._type_ids = type_ids
        self._in_one_file = type(rules).same_class is Rules.same_class
        self._parts: dict[str, Ids] = {}
        self._bases: dict[str, tuple[Ids, bool]] = {}
        self._orders: dict[str, Ids] = {}
        self._below: dict[str, list[str]] | None = None
        self._structural: dict[str, list[str]] | None = None

    @property
    def all(self) -> list[str]:
        """Every type but namespaces and `impl` blocks, sorted."""
        symbols = self._tables.symbols
        types = (s for s in symbols.values() if s.kind is SymbolKind.CLASS)
        return sorted(s.id for s in types if s.form not in ("namespace", "impl", *UNNAMED))

    # ------------------------------------------------------------ parts

    def parts(self, cls: str) -> Ids:
        """All definitions of the type: partial classes, reopened ones, `impl` blocks; itself first."""
        if cls not in self._parts:
            symbol = self._tables.symbols[cls]
            others = (id for id in self._same_name(symbol.qualname, symbol.path) if id != cls)
            self._parts[cls] = (cls, *self._tables.classes(others))
        return self._parts[cls]

    def _same_name(self, qualname: str, path: str) -> Ids:
        if self._in_one_file:
            return self._tables.by_file[path].get(qualname, ())
        ids = self._tables.by_qualname.get(qualname, ())
        return tuple(id for id in ids if self._rules.same_class(path, self._tables.symbols[id].path))

    def main(self, cls: str) -> Ids:
        """The parts that define the type; where there is none (an `impl` of a foreign type), the part itself."""
        parts = [id for id in self.parts(cls) if self._tables.symbols[id].form != "impl"]
        return tuple(sorted(parts)) or (cls,)

    def of(self, member: Symbol) -> Ids:
        """The types that a method or field belongs to."""
        parent = self._tables.symbols.get(member.parent or "")
        if parent is not None:
            return self.main(parent.id) if parent.kind is SymbolKind.CLASS else ()
        owner = member.qualname.rpartition(".")[0]
        ids = self._tables.classes(self._same_name(owner, member.path)) if owner else ()
        if not ids and owner:
            ids = self._type_ids(member.path, None, owner)
        return tuple(dict.fromkeys(id for found in ids for id in self.main(found)))

    def own(self, cls: str, name: str) -> Ids:
        """What the type itself defines under a name, in all of its parts and files."""
        symbol = self._tables.symbols[cls]
        return tuple(id for id in self._same_name(f"{symbol.qualname}.{name}", symbol.path))

    # ------------------------------------------------------------ bases

    def bases(self, cls: str) -> tuple[Ids, bool]:
        """(direct bases in the repository, whether there are others)."""
        if cls not in self._bases:
            self._bases[cls] = ((), True)  # a cycle
            ids: list[str] = []
            opaque = False
            for part in self.parts(cls):
                symbol = self._tables.symbols[part]
                alias = (symbol.type,) if symbol.form == "type" and symbol.type is not None else ()
                for written in dict.fromkeys((*symbol.bases, *alias)):
                    found = self._type_ids(symbol.path, symbol.parent, written)
                    opaque = opaque or not found
                    ids += [id for one in found for id in self.main(one) if id not in self.parts(cls)]
            self._bases[cls] = (tuple(dict.fromkeys(ids)), opaque)
        return self._bases[cls]

    def order(self, cls: str) -> Ids:
        """The type and its bases, nearest first: by levels."""
        if cls not in self._orders:
            out = [cls]
            for at in out:
                out += [base for base in self.bases(at)[0] if base not in out]
                if len(out) > MAX_ORDER:
                    break
            self._orders[cls] = tuple(out)
        return self._orders[cls]

    def member(self, cls: str, name: str, *, skip_own: bool = False) -> Ids:
        """The nearest definition of a member."""
        if self._tables.symbols[cls].form == "type" and not skip_own:
            return self._of_alias(cls, name)
        for owner in self.order(cls)[int(skip_own) :]:
            found = self.own(owner, name)
            if found:
                return found
        return ()

    def _of_alias(self, cls: str, name: str) -> Ids:
        """Of an alias, what it has itself, or all that the types have which it joins (`A | B`, `A & B`)."""
        found: list[str] = []
        seen = [cls]
        for at in seen:
            if len(seen) > MAX_ORDER:
                break
            own = self.own(at, name)
            if own or self._tables.symbols[at].form != "type":
                found += own or self.member(at, name)
            else:
                seen += [base for base in self.bases(at)[0] if base not in seen]
        return tuple(dict.fromkeys(found))

    def is_opaque(self, cls: str) -> bool:
        """Whether some ancestor lies outside of the repository."""
        return any(self.bases(owner)[1] for owner in self.order(cls))

    # ------------------------------------------------------------ relations

    def subclasses(self, cls: str) -> Ids:
        """All types below, transitively, sorted; for structural languages also those that have the methods."""
        below = self._direct()
        found: set[str] = set()
        stack = list(below.get(cls, ()))
        while stack:
            at = stack.pop()
            if at not in found and at != cls:
                found.add(at)
                stack.extend(below.get(at, ()))
        return tuple(sorted(found))

    def _direct(self) -> dict[str, list[str]]:
        if self._below is None:
            self._below = {}
            for cls in self.all:
                is_alias = self._tables.symbols[cls].form == "type"
                for base in () if is_alias else self.bases(cls)[0]:
                    self._below.setdefault(base, []).append(cls)
            for cls, interfaces in self._implemented().items():
                for interface in interfaces:
                    self._below.setdefault(interface, []).append(cls)
        return self._below

    def overridden(self, method: Symbol) -> Ids:
        """The members of the same name in the types above, nearest first."""
        found: list[str] = []
        for cls in self.of(method):
            above = [*self.order(cls)[1:], *self._implemented().get(cls, ())]
            found += [id for owner in above for id in self.own(owner, method.name) if id != method.id]
        return tuple(dict.fromkeys(found))

    def _implemented(self) -> dict[str, list[str]]:
        """Type -> interfaces whose methods it has all of (structural languages only)."""
        if not self._rules.structural:
            return {}
        if self._structural is None:
            self._structural = self._find_implemented()
        return self._structural

    def _find_implemented(self) -> dict[str, list[str]]:
        methods: dict[str, set[str]] = {}
        for symbol in self._tables.symbols.values():
            if symbol.kind is SymbolKind.METHOD:
                for cls in self.of(symbol):
                    methods.setdefault(cls, set()).add(symbol.name)
        symbols = self._tables.symbols
        full = {cls: set().union(*(methods.get(at, set()) for at in self.order(cls))) for cls in self.all}
        interfaces = [cls for cls in self.all if symbols[cls].form in _ABSTRACT and full[cls]]
        out: dict[str, list[str]] = {}
        for cls in self.all:
            if symbols[cls].form not in _ABSTRACT and full[cls]:
                fits = [one for one in interfaces if full[one] <= full[cls]]
                if fits:
                    out[cls] = fits
        return out
