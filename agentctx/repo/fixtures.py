"""pytest fixtures: which definition a parameter of a test or fixture means, and what runs unasked. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from agentctx.repo.atoms import Function
from agentctx.repo.bindings import Bindings
from agentctx.repo.hierarchy import Hierarchy
from agentctx.repo.name_tables import EXTERNAL, UNKNOWN, Binding
from agentctx.repo.values import Values
from agentctx.source import Reference, Resolution, Symbol, SymbolKind

PYTEST_FIXTURES = frozenset(
    [
        *("cache", "capfd", "capfdbinary", "caplog", "capsys", "capsysbinary", "capteesys", "doctest_namespace"),
        *("monkeypatch", "pytestconfig", "pytester", "record_property", "record_testsuite_property", "recwarn"),
        *("record_xml_attribute", "request", "subtests", "testdir", "tmp_path", "tmp_path_factory", "tmpdir"),
        *("tmpdir_factory", "_pytest"),
    ]
)
_GIVEN = frozenset({"given", "patch", "patches"})  # decorators that fill parameters in by themselves
_OF_CLASS = (
    *("setUpClass", "setup_class", "setUp", "asyncSetUp", "setup_method", "setup"),
    *("tearDown", "asyncTearDown", "teardown_method", "teardown", "tearDownClass", "teardown_class"),
)
_OF_MODULE = ("setUpModule", "setup_module", "setup_function", "tearDownModule", "teardown_module", "teardown_function")


class Fixtures:
    """Looks in the class, the file, its imports, then in the conftest files of the folders above, nearest first."""

    def __init__(self, bindings: Bindings, hierarchy: Hierarchy, values: Values) -> None:
        self._bindings = bindings
        self._symbols = bindings.symbols
        self._hierarchy = hierarchy
        self._values = values
        self._known: dict[tuple[str, str], Binding | None] = {}
        self._named = self._by_given_name()
        self._unasked: dict[str, tuple[str, ...]] = {}

    def _by_given_name(self) -> dict[tuple[str, str | None, str], tuple[str, ...]]:
        """(path, class, name) -> the fixtures that their decorators call so."""
        found: dict[tuple[str, str | None, str], tuple[str, ...]] = {}
        for id, symbol in sorted(self._symbols.items()):
            for trait in symbol.traits if symbol.is_fixture else ():
                if trait.startswith("name="):
                    key = (symbol.path, symbol.parent, trait.removeprefix("name="))
                    found[key] = (*found.get(key, ()), id)
        return found

    # ------------------------------------------------------------ asked for by name

    def resolve(self, reference: Reference) -> Binding:
        asking = self._symbols.get(reference.scope or "")
        if asking is not None and any(_GIVEN & set(d.split(".")) for d in asking.decorators):
            return EXTERNAL
        for cls in self._classes_around(asking):
            found = self._in_class(cls, reference.name)
            if found and asking is not None and asking.id not in found:
                return Binding(Resolution.RESOLVED, found)
        for path in (reference.path, *self._conftests(reference.path)):
            binding = self._in_file(path, reference.name)
            # A fixture may ask for the one that it overrides: for its own name it means the next one up.
            if binding is not None and not (asking is not None and asking.id in binding.targets):
                return binding if path == reference.path else replace(binding, via=None)
        return EXTERNAL if reference.name in PYTEST_FIXTURES else UNKNOWN

    def _classes_around(self, symbol: Symbol | None) -> Iterator[str]:
        """The classes around a definition, innermost first; a class itself too."""
        while symbol is not None:
            if symbol.kind is SymbolKind.CLASS:
                yield symbol.id
            symbol = self._symbols.get(symbol.parent or "")

    def _in_class(self, cls: str, name: str) -> tuple[str, ...]:
        for owner in self._hierarchy.order(cls):
            found = self._named.get((self._symbols[owner].path, owner, name))
            if found:
                return found
        return self._fixtures(self._hierarchy.member(cls, name), name)

    def _conftests(self, path: str) -> list[str]:
        found = []
        folder = path
        while folder:
            folder = folder.rpartition("/")[0]
            candidate = f"{folder}/conftest.py" if folder else "conftest.py"
            if candidate in self._bindings.tables and candidate != path:
                found.append(candidate)
        return found

    def _in_file(self, path: str, name: str) -> Binding | None:
        key = (path, name)
        if key not in self._known:
            self._known[key] = self._look(path, name)
        return self._known[key]

    def _look(self, path: str, name: str) -> Binding | None:
        """A fixture that the file defines, imports, or gets from a plugin module that it names."""
        named = self._named.get((path, None, name))
        if named:
            return Binding(Resolution.RESOLVED, named)
        binding = self._bindings.name(path, None, name)
        found = self._fixtures(binding.targets, name)
        if found:
            return replace(binding, targets=found)
        for plugin in self._plugins(path):
            module, _ = self._bindings.modules.absolute(plugin, path)
            if module is None:
                continue
            found = self._named.get((module.path or "", None, name)) or self._fixtures(
                self._bindings.export(module, name).targets, name
            )
            if found:
                return Binding(Resolution.RESOLVED, found)
        return None

    def _plugins(self, path: str) -> list[str]:
        ids = self._bindings.tables[path].members.get(None, {}).get("pytest_plugins", ())
        traits = (trait for id in ids for trait in self._symbols[id].traits)
        return [trait.removeprefix("plugin=") for trait in traits if trait.startswith("plugin=")]

    def _fixtures(self, ids: Iterable[str], name: str) -> tuple[str, ...]:
        """Those of the definitions that are fixtures under this name."""
        symbols = (self._symbols[id] for id in ids if id in self._symbols)
        return tuple(s.id for s in symbols if self._is_fixture(s) and _bears(s, name))

    def _is_fixture(self, symbol: Symbol) -> bool:
        """Also a constant that holds what a function made a fixture of."""
        if symbol.is_fixture or symbol.kind is not SymbolKind.CONSTANT or not symbol.value.endswith("()"):
            return symbol.is_fixture
        made = self._values.of_symbols((symbol.id,), None)
        return any(isinstance(a, Function) and any(self._symbols[id].is_fixture for id in a.ids) for a in made)

    # ------------------------------------------------------------ run unasked

    def unasked(self, test: Symbol) -> tuple[str, ...]:
        """Fixtures with `autouse`, and the set-up methods of test classes and modules, that run for a test."""
        found: list[str] = []
        for cls in self._classes_around(test):
            if cls not in self._unasked:
                self._unasked[cls] = tuple(self._of_class(cls))
            found += self._unasked[cls]
        for path in (test.path, *self._conftests(test.path)):
            if path not in self._unasked:
                self._unasked[path] = tuple(self._of_file(path))
            found += self._unasked[path]
        return tuple(dict.fromkeys(found))

    def _of_class(self, cls: str) -> Iterator[str]:
        for name in _OF_CLASS:
            yield from self._hierarchy.member(cls, name)
        for owner in self._hierarchy.order(cls):
            yield from self._automatic(self._symbols[owner].path, owner)

    def _of_file(self, path: str) -> Iterator[str]:
        members = self._bindings.tables[path].members.get(None, {})
        for name in _OF_MODULE:
            yield from members.get(name, ())
        yield from self._automatic(path, None)
        for plugin in self._plugins(path):
            module, _ = self._bindings.modules.absolute(plugin, path)
            if module is not None and module.path in self._bindings.tables:
                yield from self._automatic(module.path, None)

    def _automatic(self, path: str, parent: str | None) -> Iterator[str]:
        for ids in self._bindings.tables[path].members.get(parent, {}).values():
            yield from (id for id in ids if self._symbols[id].is_fixture and "autouse" in self._symbols[id].traits)


def _bears(symbol: Symbol, name: str) -> bool:
    """Whether pytest knows a fixture by its own name."""
    given = [trait for trait in symbol.traits if trait.startswith("name=")]
    return not given or f"name={name}" in given
