"""What names mean in Python files: definitions, imports, re-exports. Pure."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from agentctx.repo.modules import Module, ModuleMap
from agentctx.repo.name_tables import EXTERNAL, UNKNOWN, Binding, FileTable, make_table
from agentctx.source import FileSyntax, Import, Resolution, Symbol, SymbolKind

_BUILTINS = frozenset(dir(builtins)) | {
    *("__file__", "__path__", "__class__", "__annotations__", "__all__", "__version__", "reveal_type", "__qualname__"),
    *("__module__", "WindowsError", "__warningregistry__", "__cached__"),
}

_Place = tuple[Module, str | None]  # an attribute of a module; None: the module itself
_Door = tuple[str, int]  # path and unit of an import by which a module hands a name on


class _Step(NamedTuple):
    """How the search got to a place."""

    before: _Place
    door: _Door | None


class Bindings:
    """Looks names up in scopes, modules and along import chains. Answers are remembered."""

    def __init__(self, files: Iterable[FileSyntax]) -> None:
        self.tables = {file.path: make_table(file) for file in files if file.language == "python"}
        self.modules = ModuleMap(self.tables)
        self.symbols: dict[str, Symbol] = {s.id: s for t in self.tables.values() for s in t.file.symbols}
        self._exports: dict[_Place, Binding] = {}
        self._imported: dict[Import, Binding] = {}
        self._names: dict[tuple[str, str | None, bool, str], Binding] = {}

    # ------------------------------------------------------------ names in scopes

    def name(self, path: str, scope: str | None, name: str, *, in_class: bool = False) -> Binding:
        """What `name` means inside the definition `scope`. `in_class`: the names of a class `scope` are seen too."""
        key = (path, scope, in_class, name)
        if key not in self._names:
            self._names[key] = self._name(path, scope, name, in_class)
        return self._names[key]

    def _name(self, path: str, scope: str | None, name: str, in_class: bool) -> Binding:
        table = self.tables[path]
        while scope is not None:
            holder = self.symbols[scope]
            is_class = holder.kind is SymbolKind.CLASS
            if not is_class or in_class:
                found = self._held(table, scope, name)
                if found is not None and not (is_class and self._is_instances(found)):
                    return found
            in_class = False
            scope = holder.parent
        if name not in table.top:
            table.top[name] = self._held(table, None, name)
        found = table.top[name]
        if found is not None:
            return found
        if name in _BUILTINS:
            return EXTERNAL
        return self._starred(table, name)

    def _is_instances(self, binding: Binding) -> bool:
        """Whether it is a field that methods assign: no name of the class's body."""
        symbols = [self.symbols[id] for id in binding.targets if id in self.symbols]
        return bool(symbols) and all("instance" in symbol.traits for symbol in symbols)

    def _held(self, table: FileTable, scope: str | None, name: str) -> Binding | None:
        members = table.members.get(scope)
        if members is not None and (ids := members.get(name)) is not None:
            return Binding(Resolution.RESOLVED, ids)
        imported = table.imports.get(scope)
        imports = imported.get(name) if imported is not None else None
        return self._best(imports) if imports is not None else None

    def _best(self, imports: Sequence[Import]) -> Binding:
        """Of alternatives (`try`/`except ImportError`) the first that resolves, else one that is external.

        By which other imports it got to the one of this file is for that import to say.
        """
        found = [self.imported(item) for item in imports]
        order = (Resolution.RESOLVED, Resolution.EXTERNAL, Resolution.UNKNOWN)
        best = min(found, key=lambda binding: order.index(binding.state))
        return replace(best, handed=()) if best.handed else best

    def _starred(self, table: FileTable, name: str) -> Binding:
        external: Binding = UNKNOWN
        for star in table.stars:
            module, known = self.source(star)
            if module is None:
                external = external if known else replace(EXTERNAL, via=star.unit)
                continue
            found = self.export(module, name) if self._is_public(module, name) else UNKNOWN
            if found.state is not Resolution.UNKNOWN:
                return replace(found, via=star.unit)
        return external

    def _is_public(self, module: Module, name: str) -> bool:
        """Whether a star import of the module brings the name in."""
        stack, seen = [module], {module}
        while stack:
            at = stack.pop()
            table = self.tables.get(at.path or "")
            if table is None:
                continue
            exports = table.file.exports
            if name in exports if exports else not name.startswith("_"):
                return True
            for entry in exports:
                inner = self._exporting(table, entry[1:]) if entry[:1] == "*" else None
                if inner is not None and inner not in seen:
                    seen.add(inner)
                    stack.append(inner)
        return False

    def _exporting(self, table: FileTable, dotted: str) -> Module | None:
        """The module whose `__all__` another one takes over."""
        first, *rest = dotted.split(".")
        imports = table.imports.get(None, {}).get(first)
        binding = self._best(imports) if imports is not None else UNKNOWN
        for part in rest:
            binding = self.export(binding.module, part) if binding.module is not None else UNKNOWN
        return binding.module

    # ------------------------------------------------------------ imports

    def source(self, item: Import) -> tuple[Module | None, bool]:
        """(the module that an import names, whether it is, or ought to be, in the repository)."""
        if item.level:
            return self.modules.relative(item.level, item.module, item.path), True
        return self.modules.absolute(item.module, item.path)

    def imported(self, item: Import) -> Binding:
        """What an import binds, with its unit as `via`."""
        if item not in self._imported:
            self._imported[item] = replace(self._import(item), via=item.unit)
        return self._imported[item]

    def _import(self, item: Import) -> Binding:
        top = item.module.partition(".")[0]
        if item.name is None and item.alias == top and not item.level:
            # `import a.b` binds `a`; what follows is looked up from there.
            module, known = self.modules.absolute(top, item.path)
        else:
            module, known = self.source(item)
        if module is None:
            return UNKNOWN if known else _outside(item)
        if item.name is None or item.name == "*":
            return self.of_module(module)
        found = self.export(module, item.name)
        # A relative import can't leave the repository.
        is_lost = item.level and found.state is Resolution.EXTERNAL and found.module is None
        return UNKNOWN if is_lost and module.path is None else found

    def export(self, module: Module, name: str) -> Binding:
        """The attribute `name` of a module: its own, imported into it (chains are followed), or a submodule."""
        key = (module, name)
        if key not in self._exports:
            self._exports[key] = self._follow(module, name)
        return self._exports[key]

    def _follow(self, module: Module, name: str) -> Binding:
        """Depth first: own names, then imports in order, then a submodule."""
        stack: list[tuple[_Place, _Step | None]] = [((module, name), None)]
        seen: dict[_Place, _Step | None] = {}
        # A bare folder may be part of a library's namespace, or just bear its name.
        otherwise = UNKNOWN if module.path is not None else EXTERNAL
        found: Binding | None = None
        branched = False
        while stack and found is None:
            place, step = stack.pop()
            if place in seen:
                continue
            seen[place] = step
            found = self._answer(*place)
            if found is None:
                nexts, leaving = self._nexts(*place)
                otherwise = leaving or otherwise
                branched = branched or len(nexts) > 1
                stack += [(behind, _Step(place, door)) for behind, door in reversed(nexts)]
        if found is None:
            self._exports.update(dict.fromkeys(seen, otherwise) if not branched else {})
            return otherwise
        answers = _handed_along(place, found, seen)
        if not branched:  # it holds for the whole chain
            self._exports.update(answers)
        return answers[module, name]

    def _answer(self, at: Module, wanted: str | None) -> Binding | None:
        if wanted is None:
            return self.of_module(at)
        known = self._exports.get((at, wanted))
        if known is not None and known.state is Resolution.RESOLVED:
            return known
        table = self.tables.get(at.path or "")
        ids = table.members.get(None, {}).get(wanted) if table is not None else None
        return Binding(Resolution.RESOLVED, ids) if ids else None

    def _nexts(self, at: Module, wanted: str | None) -> tuple[list[tuple[_Place, _Door | None]], Binding | None]:
        """(where to look next and by which import, what an import that leaves the repository means)."""
        known = self._exports.get((at, wanted)) if wanted is not None else None
        if known is not None or wanted is None:  # a dead end
            return [], known if known is not None and known.state is Resolution.EXTERNAL else None
        table = self.tables.get(at.path or "")
        nexts: list[tuple[_Place, _Door | None]] = []
        leaving: Binding | None = None
        own: _Door | None = None  # `from . import child`
        for item in self._doors(table, wanted) if table is not None else ():
            source, ours = self.source(item)
            if source is None and not ours:
                leaving = leaving or (_outside(item) if item.name != "*" else EXTERNAL)
            if source is not None:
                behind, door = self._behind(item, source, wanted), (item.path, item.unit)
                nexts.append((behind, door))
                is_child = behind[1] == wanted and at in (behind[0], self.modules.stub(behind[0]))
                own = own or (door if is_child else None)
        # What the code doesn't name its stub may.
        nexts += [((stub, wanted), None)] if (stub := self.modules.stub(at)) is not None else []
        nexts += [((child, None), own)] if (child := self.modules.child(at, wanted)) is not None else []
        return nexts, leaving

    def of_module(self, module: Module) -> Binding:
        """A folder without `__init__`, or with an empty one, has nothing that could be kept: no target."""
        table = self.tables.get(module.path or "")
        if table is None or module.path is None or not table.file.units:
            return Binding(Resolution.EXTERNAL, (), module)
        return Binding(Resolution.RESOLVED, (module.path,), module)

    def _behind(self, door: Import, source: Module, wanted: str) -> _Place:
        """Where an import of `wanted` leads."""
        if door.name is None:
            return self._bound(door, source), None
        return source, wanted if door.name == "*" else door.name

    def _bound(self, item: Import, source: Module) -> Module:
        """`import a.b` binds the top-level `a`."""
        top = item.module.partition(".")[0]
        if item.alias != top:
            return source
        return self.modules.absolute(top, item.path)[0] or source

    def _doors(self, table: FileTable, name: str) -> list[Import]:
        """The imports of a module that may bring `name` in: by name first, then star imports."""
        stars = []
        for star in table.stars:
            source = self.source(star)[0]
            if source is not None and self._is_public(source, name):
                stars.append(star)
        return [*table.imports.get(None, {}).get(name, ()), *stars]

    def setters(self, ids: Iterable[str]) -> tuple[str, ...]:
        """What is called where the attributes `ids` are assigned to: the properties' setters."""
        symbols = (self.symbols[id] for id in ids if id in self.symbols)
        return tuple(id for s in symbols for id in self.tables[s.path].setters.get((s.parent, s.name), ()))

    def overloads(self, ids: Iterable[str]) -> tuple[str, ...]:
        """All definitions of the functions `ids`, with their `@overload`s."""
        found: dict[str, None] = {}
        for id in ids:
            symbol = self.symbols[id]
            found.update(dict.fromkeys(self.tables[symbol.path].overloads.get((symbol.parent, symbol.name), ())))
            found[id] = None
        return tuple(found)


def _handed_along(place: _Place, found: Binding, seen: Mapping[_Place, _Step | None]) -> dict[_Place, Binding]:
    """What the places on the way to `place` are bound to, where `found` is."""
    answers = {place: found}
    while (step := seen[place]) is not None:
        found = replace(found, handed=(step.door, *found.handed)) if step.door is not None else found
        place = step.before
        answers[place] = found
    return answers


def _outside(item: Import) -> Binding:
    """What an import from outside of the repository binds."""
    if item.name is not None:
        origin = f"{item.module}.{item.name}"
    else:
        origin = item.module if item.alias != item.module.partition(".")[0] else item.alias
    return Binding(Resolution.EXTERNAL, origin=origin)
