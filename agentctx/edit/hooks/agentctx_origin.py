"""Where a check's modules come from: sends imports of the user's tree to the worktree, and proves it at the end.

Also a pytest plugin (`-p agentctx_origin`), which adds what pytest's exit code can't tell: whether collection failed.
Runs on the user's Python, so it uses nothing newer than 3.7. PYTEST_DONT_REWRITE

Reads AGENTCTX_ORIGIN: a JSON object with `tree` (the user's), `worktree`, `skip` (folders in the tree that hold
dependencies) and `out` (the folder for this process's record).
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import sys
import uuid
from importlib.machinery import ModuleSpec
from typing import Any

_BINARY = (".so", ".pyd", ".dll", ".dylib")
_DEPENDENCY_PARTS = ("site-packages", "dist-packages", "node_modules", ".tox", ".nox")


class Origins:
    """One per process. `places` holds real paths."""

    def __init__(self, places: Any) -> None:
        self.tree = os.path.join(os.path.realpath(places["tree"]), "")
        self.worktree = os.path.join(os.path.realpath(places["worktree"]), "")
        own = os.path.dirname(os.path.abspath(__file__))
        self.skip = [os.path.join(os.path.realpath(path), "") for path in [*places["skip"], own, sys.prefix]]
        self.skip = [path for path in self.skip if not self.tree.startswith(path)]
        self.out = os.path.join(places["out"], uuid.uuid4().hex + ".json")
        self.pid = os.getpid()
        self.collect_errors = 0
        self.pytest_exit: int | None = None

    def in_tree(self, path: str) -> bool:
        """Whether a real path is the user's own file (and not a dependency that lives in the tree)."""
        if not path.startswith(self.tree) or path.startswith(self.worktree):
            return False
        parts = path[len(self.tree) :].split(os.sep)
        return not path.startswith(tuple(self.skip)) and not any(part in _DEPENDENCY_PARTS for part in parts)

    def counterpart(self, path: str) -> str | None:
        """The worktree's version of a path of the user's tree; None where there is none."""
        real = os.path.realpath(path)
        if not self.in_tree(os.path.join(real, "") if os.path.isdir(real) else real):
            return None
        other = os.path.normpath(os.path.join(self.worktree, os.path.relpath(real, self.tree)))
        return other if os.path.exists(other) else None

    # ---- redirecting: a finder in front of all others

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec: ModuleSpec | None = finder.find_spec(name, path, target)
            if spec is not None:
                return self.redirected(name, spec)
        return None

    def redirected(self, name: str, spec: ModuleSpec) -> ModuleSpec | None:
        places = None
        if spec.submodule_search_locations is not None:
            places = [self.counterpart(place) or place for place in list(spec.submodule_search_locations)]
        if spec.has_location and spec.origin:
            other = self.counterpart(spec.origin)
            if other is None:
                return spec
            return importlib.util.spec_from_file_location(name, other, submodule_search_locations=places)
        if places is None or places == list(spec.submodule_search_locations or ()):
            return spec
        namespace = ModuleSpec(name, None, is_package=True)
        namespace.submodule_search_locations = places
        return namespace

    def redirect_path(self) -> None:
        sys.path[:] = [self.counterpart(entry) or entry if entry else entry for entry in sys.path]

    # ---- the proof

    def record(self) -> dict[str, Any]:
        mine: set[str] = set()
        theirs: set[str] = set()
        binaries: set[str] = set()
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if not isinstance(file, str):
                continue
            real = os.path.realpath(file)
            if real.startswith(self.worktree):
                mine.add(os.path.relpath(real, self.worktree))
            elif self.in_tree(real):
                (binaries if real.endswith(_BINARY) else theirs).add(os.path.relpath(real, self.tree))
        return {
            "worktree": sorted(mine),
            "tree": sorted(theirs),
            "binaries": sorted(binaries),
            "collect_errors": self.collect_errors,
            "pytest_exit": self.pytest_exit,
        }

    def write(self) -> None:
        if os.getpid() != self.pid:  # a fork that ends normally: its own record
            self.pid = os.getpid()
            self.out = os.path.join(os.path.dirname(self.out), uuid.uuid4().hex + ".json")
        with open(self.out + ".part", "w") as stream:
            json.dump(self.record(), stream)
        os.replace(self.out + ".part", self.out)


_installed: list[Origins] = []


def install() -> None:
    """Once per process; does nothing outside of a check."""
    places = os.environ.get("AGENTCTX_ORIGIN")
    if not places or _installed:
        return
    origins = Origins(json.loads(places))
    _installed.append(origins)
    origins.redirect_path()
    sys.meta_path.insert(0, origins)
    atexit.register(origins.write)


# ---- pytest


def pytest_configure(config: Any) -> None:
    install()


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        for origins in _installed:
            origins.collect_errors += 1


def pytest_sessionfinish(session: Any, exitstatus: Any) -> None:
    for origins in _installed:
        origins.pytest_exit = int(exitstatus)
        origins.write()
