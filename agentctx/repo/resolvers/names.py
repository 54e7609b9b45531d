"""What a name means at a place: enclosing definitions, the file, imports, what is visible without one. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agentctx.repo.resolvers.classes import Classes
from agentctx.repo.resolvers.imported import WHOLE
from agentctx.repo.resolvers.rules import Rules, Space
from agentctx.repo.resolvers.tables import Ids, Tables
from agentctx.source import Import, Symbol, SymbolKind

MANY = 4  # files of a module from which on they aren't asked one by one
MAX_DEPTH = 12  # of re-exports; longer chains are cycles


@dataclass(frozen=True, slots=True)
class Found:
    """What a name means: definitions, a module, something outside of the repository, or (all empty) nothing known."""

    ids: Ids = ()
    space: Space | None = None
    external: bool = False
    via: int | None = None  # the import unit that brings it in

    def __bool__(self) -> bool:
        return bool(self.ids) or self.space is not None or self.external


NOTHING = Found()
EXTERNAL = Found(external=True)


class Names:
    """Lookups of one family, remembered."""

    def __init__(self, tables: Tables, rules: Rules) -> None:
        self.tables = tables
        self.rules = rules
        self.classes = Classes(tables, rules, self.type_ids)
        self._known: dict[tuple[str, str | None, str], Found] = {}
        self._imported: dict[tuple[str, int, str, str | None], Found] = {}
        self._open: set[tuple[str, str]] = set()
        self._n_open = 0  # imports that are being looked up
        self._exported: dict[tuple[Space, str], Found] = {}

    # ------------------------------------------------------------ names

    def name(self, path: str, scope: str | None, name: str) -> Found:
        """A bare name in the definition `scope` of a file."""
        key = (path, scope, name)
        found = self._known.get(key)
        if found is None:
            self._known[key] = NOTHING  # a cycle finds nothing
            found = self._known[key] = self._name(path, scope, name)
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
        return Found(tuple(dict.fromkeys((*found.ids, *others))), via=found.via)

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
        if item is not None:
            yield self.imported(item)
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
                return Found(found.ids, found.space, found.external, star.unit)
        return NOTHING

    # ------------------------------------------------------------ imports

    def imported(self, item: Import) -> Found:
        """What an import brings in."""
        key = (item.path, item.unit, item.module, item.name)
        if key not in self._imported:
            self._imported[key] = NOTHING
            self._n_open += 1
            found = self._find_import(item)
            self._n_open -= 1
            self._imported[key] = Found(found.ids, found.space, found.external, item.unit) if found else found
        return self._imported[key]

    def _find_import(self, item: Import) -> Found:
        spaces = self.rules.spaces(item)
        for space in spaces:
            if item.name is None or item.name == "*":
                whole = self.export(space, WHOLE) if item.name is None else NOTHING
                return Found(whole.ids, space)
            found = self.export(space, item.name) or self._whole_member(space, item.name)
            if found:
                return self._with_module(found, space) if item.name == "default" else found
            if item.name == "default":  # an expression, or CommonJS: the module stands for it
                return Found(space=space)
        inner = self.rules.submodules(item)
        if inner:
            return Found(space=inner[0])
        return NOTHING if spaces else EXTERNAL

    def _whole_member(self, space: Space, name: str) -> Found:
        """`require('m').name` and `import {name}` of a module that hands out one object."""
        whole = self.export(space, WHOLE) if self.rules.objects and name != "default" else NOTHING
        return self.inside(Found(whole.ids), name) if whole.ids else NOTHING

    def _with_module(self, main: Found, space: Space) -> Found:
        """An object that a module hands out as its default has what the module defines as members: `{a, b}`."""
        is_object = any(self.tables.symbols[id].kind is SymbolKind.CONSTANT for id in main.ids)
        return Found(main.ids, space) if is_object else main

    def export(self, space: Space, name: str, depth: int = 0) -> Found:
        """What a module hands out under a name, also by re-exports."""
        if depth or self._n_open or self._open:  # inside of another lookup: a cycle may hide something
            return self._find_export(space, name, depth)
        key = (space, name)
        if key not in self._exported:
            self._exported[key] = self._find_export(space, name, depth)
        return self._exported[key]

    def _find_export(self, space: Space, name: str, depth: int) -> Found:
        ids = self._own_exports(space, name) or self._detached(space, name)
        if ids:
            return Found(ids)
        for path in space.files if depth < MAX_DEPTH and not space.prefix else ():
            found = self._listed(path, name) or self._handed_on(path, name, depth)
            if found:
                return found
        return NOTHING

    def _detached(self, space: Space, name: str) -> Ids:
        ids = self.tables.members.get(name, ())
        return tuple(id for id in ids if self.rules.detached(space, name, self.tables.symbols[id]))

    def _own_exports(self, space: Space, name: str) -> Ids:
        if len(space.files) < MANY:
            return tuple(id for path in space.files for id in self._own_export(path, space.prefix, name))
        for before in ("",) if space.prefix else self.rules.export_prefixes:
            wanted = f"{space.prefix}.{name}" if space.prefix else before + name
            ids = tuple(
                id for id in self.tables.by_qualname.get(wanted, ()) if self.tables.symbols[id].path in space.files
            )
            if ids:
                return ids
        return ()

    def _own_export(self, path: str, prefix: str, name: str) -> Ids:
        table = self.tables.by_file.get(path, {})
        if prefix:
            return table.get(f"{prefix}.{name}", ())
        for before in self.rules.export_prefixes:
            ids = table.get(before + name, ())
            if ids:
                return ids
        return ()

    def _listed(self, path: str, name: str) -> Found:
        """By the file's export list: `public:local`."""
        file = self.tables.files.get(path)
        for entry in file.exports if file is not None else ():
            public, _, renamed = entry.partition(":")
            local = renamed or public
            if (public == name or (public, name) == (WHOLE, "default")) and (path, local) not in self._open:
                self._open.add((path, local))
                try:
                    return self.dotted(path, None, local)
                finally:
                    self._open.discard((path, local))
        return NOTHING

    def _handed_on(self, path: str, name: str, depth: int) -> Found:
        file = self.tables.files.get(path)
        if file is None:
            return NOTHING
        for item in file.imports if name in self.tables.imports[path] else ():
            if item.alias == name and self.rules.hands_on(item):
                return self.imported(item)
        for item in self.tables.stars[path]:
            if not item.alias and self.rules.hands_on(item):
                for space in self.rules.spaces(item):
                    found = self.export(space, name, depth + 1)
                    if found:
                        return found
        return NOTHING

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
            return Found(inner.ids, inner.space, inner.external, found.via) if inner else NOTHING
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
