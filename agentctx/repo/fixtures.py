"""pytest fixtures: which definition a parameter of a test or fixture means. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from agentctx.repo.bindings import EXTERNAL, UNKNOWN, Binding, Bindings
from agentctx.repo.hierarchy import Hierarchy
from agentctx.source import Reference, Resolution, SymbolKind

PYTEST_FIXTURES = frozenset(
    [
        *("cache", "capfd", "capfdbinary", "caplog", "capsys", "capsysbinary", "capteesys", "doctest_namespace"),
        *("monkeypatch", "pytestconfig", "pytester", "record_property", "record_testsuite_property", "recwarn"),
        *("record_xml_attribute", "request", "subtests", "testdir", "tmp_path", "tmp_path_factory", "tmpdir"),
        *("tmpdir_factory", "_pytest"),
    ]
)
_GIVEN = frozenset({"given", "patch", "patches"})  # decorators that fill parameters in by themselves
_STRING = re.compile(r"[\"']([\w.]+)[\"']")


class Fixtures:
    """Looks in the class, the file, its imports, then in the conftest files of the folders above, nearest first."""

    def __init__(self, bindings: Bindings, hierarchy: Hierarchy) -> None:
        self._bindings = bindings
        self._hierarchy = hierarchy
        self._known: dict[tuple[str, str], Binding | None] = {}

    def resolve(self, reference: Reference) -> Binding:
        symbols = self._bindings.symbols
        asking = symbols.get(reference.scope or "")
        if asking is not None and any(_GIVEN & set(d.split(".")) for d in asking.decorators):
            return EXTERNAL
        if asking is not None and asking.kind is SymbolKind.METHOD and asking.parent in symbols:
            found = self._fixtures(self._hierarchy.member(asking.parent, reference.name))
            if found and asking.id not in found:
                return Binding(Resolution.RESOLVED, found)
        for path in (reference.path, *self._conftests(reference.path)):
            binding = self._in_file(path, reference.name)
            # A fixture may ask for the one that it overrides: for its own name it means the next one up.
            if binding is not None and not (asking is not None and asking.id in binding.targets):
                return binding if path == reference.path else replace(binding, via=None)
        return EXTERNAL if reference.name in PYTEST_FIXTURES else UNKNOWN

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
        binding = self._bindings.name(path, None, name)
        found = self._fixtures(binding.targets)
        if found:
            return replace(binding, targets=found)
        for renamed in (f"_{name}", f"fixture_{name}", f"{name}_fixture", f"{name}_"):
            # The usual function names under `@pytest.fixture(name=...)`, whose argument we don't see.
            found = self._fixtures(self._bindings.tables[path].members.get(None, {}).get(renamed, ()))
            if found:
                return Binding(Resolution.RESOLVED, found)
        for plugin in self._plugins(path):
            module, _ = self._bindings.modules.absolute(plugin, path)
            found = self._fixtures(self._bindings.export(module, name).targets) if module is not None else ()
            if found:
                return Binding(Resolution.RESOLVED, found)
        return None

    def _plugins(self, path: str) -> list[str]:
        ids = self._bindings.tables[path].members.get(None, {}).get("pytest_plugins", ())
        return [name for id in ids for name in _STRING.findall(self._bindings.symbols[id].signature)]

    def _fixtures(self, ids: tuple[str, ...]) -> tuple[str, ...]:
        symbols = self._bindings.symbols
        return tuple(id for id in ids if id in symbols and symbols[id].is_fixture)
