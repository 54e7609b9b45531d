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


class ImportedPaths:
    """Looks imports up among `paths`."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._by_end: dict[str, list[str]] = {}
        self._folders: dict[str, list[str]] = {}
        self._stems: dict[str, tuple[str, ...]] = {}
        for path in sorted(paths):
            stem = _stem(path)
            if stem:
                self._stems[path] = stem
                self._by_end.setdefault(stem[-1], []).append(path)
            self._folders.setdefault("/".join(path.split("/")[:-1][-1:]), []).append(path)

    def candidates(self, item: Import) -> tuple[str, ...]:
        """The files whose path agrees with the most of what the import says; of equals the nearest to its file."""
        module = [part for part in _SEPARATORS.split(item.module) if part and part != "crate"]
        wholes = [module] if item.name in (None, "*") else [[*module, str(item.name)], module]
        found: list[str] = []
        for parts in wholes:
            found += self._best(parts, item.path)
        if not found and module:
            found = self._in_folder(module, item.path)
        if item.level and not module:
            found += self._beside(item)
        return tuple(dict.fromkeys(found))[:MAX_FILES]

    def _best(self, parts: list[str], importer: str) -> list[str]:
        """Files; an extension that is part of the import (`a/b.h`, `./c.js`) may be its last part."""
        ends = [parts, parts[:-1]] if len(parts) > 1 else [parts]
        for end in ends:
            near = self._by_end.get(end[-1], ()) if end else ()
            if near:
                return self._nearest(near, end, importer)
        return []

    def _nearest(self, paths: Iterable[str], parts: list[str], importer: str) -> list[str]:
        here = importer.split("/")[:-1]

        def key(path: str) -> tuple[int, int]:
            return _common_end(self._stems[path], parts), _common_start(path.split("/")[:-1], here)

        ranked = {path: key(path) for path in paths if path != importer}
        top = max(ranked.values(), default=(0, 0))
        return [path for path, value in ranked.items() if value == top]

    def _in_folder(self, module: list[str], importer: str) -> list[str]:
        """All files of the folder that the import names (Go, Java)."""
        here = importer.split("/")[:-1]
        ranked: dict[str, tuple[int, int]] = {}
        for path in self._folders.get(module[-1], ()):
            folder = path.split("/")[:-1]
            ranked[path] = _common_end(folder, module), _common_start(folder, here)
        top = max(ranked.values(), default=(0, 0))
        return [path for path, value in ranked.items() if value == top]

    def _beside(self, item: Import) -> list[str]:
        """`from . import x`."""
        folder = item.path.split("/")[: -item.level]
        return [path for path in self._by_end.get(folder[-1], ()) if path.split("/")[:-1] == folder] if folder else []


def _stem(path: str) -> tuple[str, ...]:
    *folders, name = path.split("/")
    stem = name.partition(".")[0]
    return tuple(folders) if stem in _INDEXES else (*folders, stem)


def _common_end(one: Iterable[str], other: Iterable[str]) -> int:
    return _common_start(list(one)[::-1], list(other)[::-1])


def _common_start(one: list[str], other: list[str]) -> int:
    n = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        n += 1
    return n
