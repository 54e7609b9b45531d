"""What a name means at a place: enclosing definitions, the file, imports, what is visible without one. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agentctx.repo.resolvers.classes import Classes
from agentctx.repo.resolvers.exports import EXTERNAL, NOTHING, Exports, Found
from agentctx.repo.resolvers.rules import Rules, Space
from agentctx.repo.resolvers.tables import Ids, Tables
from agentctx.source import Import, Symbol, SymbolKind


class Names:
    """Lookups of one family, remembered."""

    def __init__(self, tables: Tables, rules: Rules) -> None:
        self.tables = tables
        self.rules = rules
        self.classes = Classes(tables, rules, self.type_ids)
        self._exports = Exports(tables, rules, self.dotted, self.inside)
        self._known: dict[tuple[str, str | None, str], Found] = {}

    # ------------------------------------------------------------ names

    def name(self, path: str, scope: str | None, name: str) -> Found:
        """A bare name in the definition `scope` of a file."""
        key = (path, scope, name)
        found = self._known.get(key)
        if found is None:
            self._known[key] = NOTHING  # a cycle finds nothing
            found = self._known[key] = self._name(path, scope, name)
            if self._exports.is_cut:
                del self._known[key]
        return found

    def _name(self, path: str, scope: str | None, name: str) -> Found:
        for found in self._candidates(path, scope, name):
            if found:
                return self._completed(path, found)
        known = name in self.tables.names or (self.rules.guesses_names and name in self.tables.members)
        outside = name in self.rules.builtins or not known or self._is_open(path, scope)
        return EXTERNAL if outside else NOTHING

    def _is_open(self, path: str, scope: str | None) -> bool:
        """Whether names of the outside are visible by name alone: `import x.*`, `#include <x>`, a library's base."""
        if self.rules.closed or any(not star.alias and self.rules.opens(star) for star in self.tables.stars[path]):
            return True
        if not self.rules.bare_members:
            return False
        holders = (holder for holder in self._around(scope) if holder.kind is SymbolKind.CLASS)
        return any(self.classes.is_opaque(holder.id) for holder in holders if holder.form != "namespace")

    def _completed(self, path: str, found: Found) -> Found:
        """With the other parts of a global definition that another file has: a declaration and its definition."""
        symbols = self.tables.symbols
        if not self.rules.global_names or not found.ids or any(symbols[id].path == path for id in found.ids):
            return found
        others = self._anywhere(path, symbols[found.ids[0]].qualname)
        return Found(tuple(dict.fromkeys((*found.ids, *others))), via=found.via, handed=found.handed)

    def _candidates(self, path: str, scope: str | None, name: str) -> Iterator[Found]:
        here = self.tables.by_file[path]
        prefixes: list[str] = []
        for holder in self._around(scope):
            prefixes += self._prefixes(holder)
            yield Found(self._inside(holder, name))
        item = self.tables.imports[path].get(name) or self.rules.named_import(path, name)
        own = here.get(name, ())
        if item is not None and item.scope is None and self.rules.objects:
            own = tuple(id for id in own if self.tables.symbols[id].kind is not SymbolKind.CONSTANT)  # `x = require()`
        yield Found(own)
        if item is not None:  # how it got to the import is for the import to say
            yield replace(self.imported(item), handed=())
        for prefix in dict.fromkeys((*prefixes, *self.rules.prefixes(path), "")):
            yield Found(self._visible(path, f"{prefix}.{name}" if prefix else name))
        for star in self.tables.stars[path]:
            if not star.alias:
                yield self._from_star(star, name)
        for prefix in (*prefixes, "") if self.rules.global_names else ():
            yield Found(self._anywhere(path, f"{prefix}.{name}" if prefix else name))
        yield next((Found(space=space) for space in self.rules.dotted(path, name)), NOTHING)

    def _prefixes(self, holder: Symbol) -> list[str]:
        """What the names that a definition's text can use have before them in other files."""
        if holder.form == "namespace" and holder.kind is SymbolKind.CLASS:
            parts = holder.qualname.split(".")
            return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
        return [holder.qualname] if self.rules.bare_members and holder.kind is SymbolKind.CLASS else []

    def _visible(self, path: str, qualname: str) -> Ids:
        """Definitions of the files that are visible without an import, in the files' order."""
        symbols = self.tables.symbols
        ids = [id for id in self.tables.by_qualname.get(qualname, ()) if self.rules.sees(symbols[id])]
        order = self.rules.visible(path) if ids else {}
        return tuple(sorted((id for id in ids if symbols[id].path in order), key=lambda id: order[symbols[id].path]))

    def _anywhere(self, path: str, qualname: str) -> Ids:
        """Definitions of a global name; code doesn't use what only tests define."""
        ids = self.tables.by_qualname.get(qualname, ())
        if self.tables.files[path].is_test:
            return ids
        return tuple(id for id in ids if not self.tables.files[self.tables.symbols[id].path].is_test)

    def _around(self, scope: str | None) -> Iterator[Symbol]:
        at = self.tables.symbols.get(scope or "")
        while at is not None:
            yield at
            above = self.tables.symbols.get(at.parent or "")
            if above is None and at.kind is SymbolKind.METHOD:
                above = next((self.tables.symbols[id] for id in self.classes.of(at)), None)
            at = above

    def _inside(self, holder: Symbol, name: str) -> Ids:
        """What a definition itself holds under a name that its text can use without a receiver."""
        if holder.kind is not SymbolKind.CLASS or holder.form == "suite":
            return self.tables.by_file[holder.path].get(f"{holder.qualname}.{name}", ())
        if holder.form == "namespace":
            ids = self.tables.by_qualname.get(f"{holder.qualname}.{name}", ())
            near = tuple(id for id in ids if self.tables.symbols[id].path == holder.path)
            return near or tuple(id for id in ids if self.rules.same_class(holder.path, self.tables.symbols[id].path))
        found = self.classes.member(holder.id, name)
        if any(self.tables.symbols[id].qualname.split(".")[-2:] == [name, name] for id in found):
            found = self.tables.classes(found)  # a type's name is no use of its constructor
        return found if self.rules.bare_members else self.tables.classes(found)

    def _from_star(self, star: Import, name: str) -> Found:
        for space in self.rules.spaces(star):
            found = self.export(space, name)
            if found:
                return replace(found, via=star.unit)
        return NOTHING

    def imported(self, item: Import) -> Found:
        """What an import brings in."""
        return self._exports.imported(item)

    def export(self, space: Space, name: str) -> Found:
        """What a module hands out under a name, also by re-exports."""
        return self._exports.export(space, name)

    # ------------------------------------------------------------ dotted names and types

    def dotted(self, path: str, scope: str | None, written: str) -> Found:
        """A dotted name: modules, nested types, static members."""
        first, *rest = written.split(".")
        found = self.name(path, scope, first)
        for part in rest:
            if found.external:
                return found
            found = self.inside(found, part)
        return found

    def inside(self, found: Found, name: str) -> Found:
        """The member `name` of a module or of definitions."""
        if found.ids:
            ids = tuple(id for owner in found.ids for id in self.members_of(owner, name))
            if ids or found.space is None:
                return Found(tuple(dict.fromkeys(ids)), via=found.via)
        if found.space is not None:
            inner = self.export(found.space, name)
            if not inner:
                inner = self._default_member(found.space, name)
            if not inner:
                deeper = self.rules.submodules(_as_import(found.space, name))
                inner = Found(space=deeper[0]) if deeper else NOTHING
            return replace(inner, via=found.via) if inner else NOTHING
        return NOTHING

    def _default_member(self, space: Space, name: str) -> Found:
        main = self.export(space, "default") if not space.prefix and name != "default" else NOTHING
        return self.inside(main, name) if main.ids else NOTHING

    def members_of(self, owner: str, name: str) -> Ids:
        """Members of a definition: of a class also the inherited ones, else what is assigned to it (`app.use =`)."""
        symbol = self.tables.symbols[owner]
        if symbol.kind is SymbolKind.CLASS:
            return self.classes.member(owner, name) or self._embedded(owner, name)
        return self.tables.by_file[symbol.path].get(f"{symbol.qualname}.{name}", ())

    def _embedded(self, owner: str, name: str) -> Ids:
        """An embedded type is also a field of its name (Go)."""
        if not self.rules.structural:
            return ()
        bases = (base for cls in self.classes.order(owner) for base in self.classes.bases(cls)[0])
        return tuple(base for base in bases if self.tables.symbols[base].name == name)

    def type_ids(self, path: str, scope: str | None, written: str) -> Ids:
        """The types that a dotted name means."""
        if written in self.rules.type_names or written in self.rules.own_names:
            return self.class_around(scope)
        found = self.dotted(path, scope, written)
        if found.space is not None and not found.ids:  # `import X from` a module whose main export is the type
            found = self.export(found.space, "default")
        return self.tables.classes(found.ids)

    def class_around(self, scope: str | None) -> Ids:
        """The innermost type around a definition."""
        for holder in self._around(scope):
            if holder.kind is SymbolKind.CLASS and holder.form not in ("namespace", "suite"):
                return self.classes.main(holder.id)
        return ()

    def object_around(self, scope: str | None) -> Space | None:
        """What `this` is outside of types: the object that a function is a member of, or that it makes."""
        for holder in self._around(scope) if self.rules.objects else ():
            owner = holder.qualname.rpartition(".")[0]
            if holder.kind is SymbolKind.METHOD and owner:
                return Space((holder.path,), owner)
            if holder.kind is SymbolKind.FUNCTION and holder.name[:1].isupper():
                return Space((holder.path,), holder.qualname)
        return None


def _as_import(space: Space, name: str) -> Import:
    """`name` inside of a module, as an import would write it (for rules that look at files)."""
    path = space.files[0] if space.files else ""
    return Import(path, space.prefix, name, name, -1, 0, None, 0)
