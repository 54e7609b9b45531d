"""Which files an import may mean, by its text and the paths alone, in any language. Pure.

For choosing what to load: what an import really means the resolvers say, with the files in hand. Too many candidates
cost time, a missing one costs a link that is reported as unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from agentctx.source import Import

_SEPARATORS = re.compile(r"[./\\:]+")
_INDEXES = frozenset({"__init__", "index", "mod", "lib", "main"})  # the file that stands for its folder
MAX_FILES = 40  # of one import: a Go package is a folder
_DEPTH = 3  # parts of a path that are compared; what agrees in so many is told apart by nearness

Parts = tuple[str, ...]


class ImportedPaths:
    """Looks imports up among `paths`. Answers are remembered."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._files: dict[Parts, list[str]] = {}  # by the last 1 to `_DEPTH` parts, without the extension
        self._folders: dict[Parts, list[str]] = {}
        self._places: dict[str, Parts] = {}
        self._known: dict[tuple[bool, Parts, str], list[str]] = {}
        for path in sorted(paths):
            folder = self._places[path] = tuple(path.split("/")[:-1])
            _add(self._files, _stem(path), path)
            _add(self._folders, folder, path)

    def candidates(self, item: Import) -> tuple[str, ...]:
        """The files whose path agrees with the most of what the import says; of equals the nearest to its file."""
        module = [part for part in _SEPARATORS.split(item.module) if part and part != "crate"]
        wholes = [module] if item.name in (None, "*") else [[*module, str(item.name)], module]
        found: list[str] = []
        for parts in wholes:
            found += self._best(self._files, tuple(parts), item.path)
        found = found or self._best(self._folders, tuple(module), item.path)
        if not found:  # the last part may be an extension: `a/b.h`, `./c.js`
            found = self._best(self._files, tuple(module[:-1]), item.path)
        if item.level and not module:
            found += self._beside(item)
        return tuple(path for path in dict.fromkeys(found) if path != item.path)[:MAX_FILES]

    def _best(self, index: dict[Parts, list[str]], parts: Parts, importer: str) -> list[str]:
        """The paths that end as `parts` do, in as many parts as any; of equals the nearest to the importer."""
        here = importer.rpartition("/")[0]
        ends = parts[-_DEPTH:]
        key = (index is self._files, ends, here)
        if key not in self._known:
            near = next((index[ends[n:]] for n in range(len(ends)) if ends[n:] in index), [])
            self._known[key] = self._nearest(near, tuple(here.split("/")))
        return self._known[key]

    def _nearest(self, paths: list[str], here: Parts) -> list[str]:
        if len(paths) < 2:
            return paths
        ranked = [_common_start(self._places[path], here) for path in paths]
        top = max(ranked)
        return [path for path, value in zip(paths, ranked, strict=True) if value == top]

    def _beside(self, item: Import) -> list[str]:
        """`from . import x`: the package itself."""
        folder = tuple(item.path.split("/")[: -item.level])
        return [path for path in self._files.get(folder[-_DEPTH:], ()) if self._places[path] == folder]


def _add(index: dict[Parts, list[str]], parts: Parts, path: str) -> None:
    for n in range(1, min(len(parts), _DEPTH) + 1):
        index.setdefault(parts[-n:], []).append(path)


def _stem(path: str) -> Parts:
    *folders, name = path.split("/")
    stem = name.partition(".")[0]
    return tuple(folders) if stem in _INDEXES else (*folders, stem)


def _common_start(one: Parts, other: Parts) -> int:
    n = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        n += 1
    return n
