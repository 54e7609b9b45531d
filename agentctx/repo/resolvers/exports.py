"""What imports bring in and modules hand out: own names, export lists, re-exports. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from agentctx.repo.resolvers.imported import WHOLE
from agentctx.repo.resolvers.rules import Rules, Space
from agentctx.repo.resolvers.tables import Ids, Tables
from agentctx.source import Import, SymbolKind

MANY = 4  # files of a module from which on they aren't asked one by one
MAX_DEPTH = 12  # of re-exports; longer chains are cycles
MAX_OPEN = 32  # imports that lead to each other
Doors = tuple[tuple[str, int], ...]  # (path, unit) of statements by which a file hands a name on


@dataclass(frozen=True, slots=True)
class Found:
    """What a name means: definitions, a module, something outside of the repository, or (all empty) nothing known.

    `handed`: the statements of other files by which it gets there, as (path, unit).
    """

    ids: Ids = ()
    space: Space | None = None
    external: bool = False
    via: int | None = None  # the import unit that brings it in
    handed: Doors = ()

    def __bool__(self) -> bool:
        return bool(self.ids) or self.space is not None or self.external


NOTHING = Found()
EXTERNAL = Found(external=True)


class Exports:
    """Lookups of one family, remembered.

    `dotted`: (path, scope, dotted name) -> what it means there. `inside`: (what a name means, member) -> the member.
    """

    def __init__(
        self,
        tables: Tables,
        rules: Rules,
        dotted: Callable[[str, str | None, str], Found],
        inside: Callable[[Found, str], Found],
    ) -> None:
        self._tables = tables
        self._rules = rules
        self._dotted = dotted
        self._inside = inside
        self._imported: dict[tuple[str, int, str, str | None], Found] = {}
        self._open: set[tuple[str, str]] = set()
        self._n_open = 0  # imports that are being looked up
        self.is_cut = False  # whether one of them led through more than can be followed
        self._exported: dict[tuple[Space, str], Found] = {}

    def imported(self, item: Import) -> Found:
        """What an import brings in."""
        key = (item.path, item.unit, item.module, item.name)
        if key in self._imported:
            return self._imported[key]
        if self._n_open >= MAX_OPEN:
            self.is_cut = True
            return NOTHING
        self._imported[key] = NOTHING  # a cycle
        self._n_open += 1
        found = self._find_import(item)
        self._n_open -= 1
        found = replace(found, via=item.unit) if found else found
        if self.is_cut:  # what was cut short here may be known when it is asked for by itself
            del self._imported[key]
            self.is_cut = self._n_open > 0
        else:
            self._imported[key] = found
        return found

    def _find_import(self, item: Import) -> Found:
        spaces = self._rules.spaces(item)
        for space in spaces:
            if item.name is None or item.name == "*":
                whole = self.export(space, WHOLE) if item.name is None else NOTHING
                return Found(whole.ids, space, handed=whole.handed)
            found = self.export(space, item.name) or self._whole_member(space, item.name)
            if found:
                return self._with_module(found, space) if item.name == "default" else found
            if item.name == "default":  # an expression, or CommonJS: the module stands for it
                return Found(space=space)
        inner = self._rules.submodules(item)
        if inner:
            return Found(space=inner[0])
        return NOTHING if spaces else EXTERNAL

    def _whole_member(self, space: Space, name: str) -> Found:
        """`require('m').name` and `import {name}` of a module that hands out one object."""
        whole = self.export(space, WHOLE) if self._rules.objects and name != "default" else NOTHING
        return _behind(whole.handed, self._inside(Found(whole.ids), name)) if whole.ids else NOTHING

    def _with_module(self, main: Found, space: Space) -> Found:
        """An object that a module hands out as its default has what the module defines as members: `{a, b}`."""
        is_object = any(self._tables.symbols[id].kind is SymbolKind.CONSTANT for id in main.ids)
        return Found(main.ids, space, handed=main.handed) if is_object else main

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
        ids = self._tables.members.get(name, ())
        return tuple(id for id in ids if self._rules.detached(space, name, self._tables.symbols[id]))

    def _own_exports(self, space: Space, name: str) -> Ids:
        if len(space.files) < MANY:
            return tuple(id for path in space.files for id in self._own_export(path, space.prefix, name))
        for before in ("",) if space.prefix else self._rules.export_prefixes:
            wanted = f"{space.prefix}.{name}" if space.prefix else before + name
            ids = tuple(
                id for id in self._tables.by_qualname.get(wanted, ()) if self._tables.symbols[id].path in space.files
            )
            if ids:
                return ids
        return ()

    def _own_export(self, path: str, prefix: str, name: str) -> Ids:
        table = self._tables.by_file.get(path, {})
        if prefix:
            return table.get(f"{prefix}.{name}", ())
        for before in self._rules.export_prefixes:
            ids = table.get(before + name, ())
            if ids:
                return ids
        return ()

    def _listed(self, path: str, name: str) -> Found:
        """By the file's export list: `public:local`."""
        file = self._tables.files.get(path)
        for entry, unit in zip(file.exports, file.export_units, strict=True) if file is not None else ():
            public, _, renamed = entry.partition(":")
            local = renamed or public
            if (public == name or (public, name) == (WHOLE, "default")) and (path, local) not in self._open:
                self._open.add((path, local))
                try:
                    found = self._dotted(path, None, local)
                    brought = ((path, found.via),) if found.via is not None else ()
                    return _behind(((path, unit), *brought), found)
                finally:
                    self._open.discard((path, local))
        return NOTHING

    def _handed_on(self, path: str, name: str, depth: int) -> Found:
        file = self._tables.files.get(path)
        if file is None:
            return NOTHING
        for item in file.imports if name in self._tables.imports[path] else ():
            if item.alias == name and self._rules.hands_on(item):
                return _behind(((path, item.unit),), self.imported(item))
        for item in self._tables.stars[path]:
            if not item.alias and self._rules.hands_on(item):
                for space in self._rules.spaces(item):
                    found = self.export(space, name, depth + 1)
                    if found:
                        return _behind(((path, item.unit),), found)
        return NOTHING


def _behind(doors: Doors, found: Found) -> Found:
    """What was found by way of statements of other files."""
    return replace(found, handed=tuple(dict.fromkeys((*doors, *found.handed)))) if found else found
