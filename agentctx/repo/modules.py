"""Python module names -> files, under every plausible source root. Pure.

A source root is the repository's root, `src/`, `lib/`, or the parent of a top-level package (a folder with an
`__init__` below one without). A module next to a script is found by that script too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass

_SUFFIXES = (".py", ".pyi")  # in order of preference


@dataclass(frozen=True, slots=True)
class Module:
    """A module or package. `path` is None for a folder without `__init__`, `folder` for a plain module."""

    path: str | None
    folder: str | None


class ModuleMap:
    """Answers which file a module name means, seen from an importing file."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._files = frozenset(path for path in paths if path.endswith(_SUFFIXES))
        self._folders = frozenset(folder for path in self._files for folder in _above(path))
        self._packages = frozenset(
            folder
            for folder in self._folders
            if any(_join(folder, f"__init__{end}") in self._files for end in _SUFFIXES)
        )
        self._roots = self._find_roots()
        self._tops: dict[tuple[str, str], tuple[Module, ...]] = {}

    def _find_roots(self) -> tuple[str, ...]:
        roots: set[str] = {root for root in ("", "src", "lib") if root in self._folders or root == ""}
        roots |= {_parent(package) for package in self._packages if _parent(package) not in self._packages}
        return tuple(sorted(roots))

    def absolute(self, dotted: str, importer: str) -> tuple[Module | None, bool]:
        """(the module, whether its top-level name is the repository's). Names of the standard library are not.

        Of several candidates the one that has the whole name wins, then the one nearest to the importer.
        """
        top, _, rest = dotted.partition(".")
        candidates = self._top(top, importer)
        for candidate in candidates:
            found = self._descend(candidate, rest)
            if found is not None:
                return found, True
        # A bare folder proves nothing: `import build` beside a folder `build` means the library.
        return None, any(candidate.path is not None for candidate in candidates)

    def relative(self, level: int, dotted: str, importer: str) -> Module | None:
        """The module that `from ..a.b import c` (level 2, 'a.b') names in `importer`."""
        folder = _parent(importer)
        for _ in range(level - 1):
            if not folder:
                return None
            folder = _parent(folder)
        return self._descend(self._package(folder) or Module(None, folder), dotted)

    def child(self, module: Module, name: str) -> Module | None:
        """The submodule `name` of a package; packages win over modules, `.py` over `.pyi`."""
        if module.folder is None:
            return None
        stem = _join(module.folder, name)
        package = self._package(stem)
        if package is not None and package.path is not None:
            return package
        path = next((stem + end for end in _SUFFIXES if stem + end in self._files), None)
        return Module(path, None) if path is not None else package

    def stub(self, module: Module) -> Module | None:
        """The `.pyi` beside a `.py`."""
        path = f"{module.path}i" if module.path is not None and module.path.endswith(".py") else None
        return Module(path, module.folder) if path in self._files else None

    def _package(self, folder: str) -> Module | None:
        for end in _SUFFIXES:
            path = _join(folder, f"__init__{end}")
            if path in self._files:
                return Module(path, folder)
        return Module(None, folder) if folder in self._folders else None

    def _descend(self, module: Module, dotted: str) -> Module | None:
        found: Module | None = module
        for part in dotted.split(".") if dotted else ():
            found = self.child(found, part) if found is not None else None
        return found

    def _top(self, name: str, importer: str) -> tuple[Module, ...]:
        own = _parent(importer)
        key = (name, own)
        if key not in self._tops:
            self._tops[key] = tuple(self._find_tops(name, own))
        return self._tops[key]

    def _find_tops(self, name: str, own: str) -> list[Module]:
        beside = self.child(Module(None, own), name) if own not in self._packages else None
        if name in sys.stdlib_module_names:
            return [beside] if beside is not None and beside.path is not None else []
        roots = sorted(self._roots, key=lambda root: (-_shared(root, own), len(root), root))
        found = [beside, *(self.child(Module(None, root), name) for root in roots)]
        distinct = list(dict.fromkeys(module for module in found if module is not None))
        return sorted(distinct, key=lambda module: module.path is None)


def _above(path: str) -> Iterable[str]:
    folder = path
    while folder:
        folder = _parent(folder)
        yield folder


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _shared(root: str, own: str) -> int:
    """How many leading path parts agree, if all of the root's do."""
    parts, others = root.split("/") if root else [], own.split("/")
    return len(parts) if others[: len(parts)] == parts else -1
