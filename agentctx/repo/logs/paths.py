"""Paths as logs write them -> paths of the repository, by their longest common end. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

_INSTALLED = re.compile(r"(?:^|/)(?:site|dist)-packages/(?:[^/]+\.egg/)?(.+)$")
_STDLIB = re.compile(
    r"(?:^|/)lib(?:64)?/(?:python|pypy)\d[\d.]*/|(?:^|/)python\d*(?:/[\d.]+)?(?:/x\d+)?/lib/|^<", re.IGNORECASE
)
_WINDOWS = re.compile(r"^(?:[A-Za-z]:[\\/]|\\\\)|\\")
_DRIVE = re.compile(r"^/?[A-Za-z]:(?=/)")
_LONG = re.compile(r"^//[?.]/(?:UNC/)?")  # \\?\ and \\.\, once their bars are turned
_SCHEME = re.compile(
    r"^(?:file|https?|webpack(?:-internal)?|vite|rsc|resource|app|turbopack|ng|vscode-file):/{0,3}", re.I
)
_QUERY = re.compile(r"[?#][^/]*$")  # bundlers add one to their URLs
_BUILT = re.compile(
    r"(?:^|/)(?:dist|build|out|lib|esm|cjs|es|target|\.next/server|_build)/(?:(?:src|lib|esm|cjs)/)?(.+)\.[cm]?js$"
)
_SOURCES = ("ts", "tsx", "mts", "cts", "jsx", "js", "mjs", "cjs", "vue", "coffee")


@dataclass(frozen=True, slots=True)
class Located:
    """`path` is repository-relative when `in_repo`, else as written. `rivals`: equally good candidates.

    `maybe` is a source that the file may be built from.
    """

    path: str
    in_repo: bool
    rivals: tuple[str, ...] = ()
    maybe: str | None = None


class PathMap:
    """Looks up written paths; answers are remembered."""

    def __init__(self, repo_paths: Collection[str]) -> None:
        self._paths = frozenset(repo_paths)
        self._by_name: dict[str, list[str]] = {}
        for path in sorted(self._paths):
            self._by_name.setdefault(path.rpartition("/")[2], []).append(path)
        self._by_folded: dict[str, list[str]] = {}
        for name, found in self._by_name.items():
            self._by_folded.setdefault(name.casefold(), []).extend(found)
        self._known: dict[str, Located] = {}

    def locate(self, written: str) -> Located:
        """The repository file that `written` names: absolute, relative, in a container or installed."""
        if written not in self._known:
            self._known[written] = self._locate(written)
        return self._known[written]

    def _locate(self, written: str) -> Located:
        path = _normal(written)
        if path in self._paths:
            return Located(path, True)
        installed = _INSTALLED.search(path)
        if installed is None and _STDLIB.search(path):
            return Located(written, False)
        tail = installed[1] if installed else path
        best = self._candidates(tail, self._by_name, whole=installed is not None)
        if not best and _WINDOWS.search(written):
            best = self._candidates(tail.casefold(), self._by_folded, whole=installed is not None)
        if len(best) == 1:
            return Located(best[0], True)
        return Located(written, False, tuple(best), None if best else self._source_of(path))

    def _candidates(self, path: str, table: Mapping[str, Sequence[str]], *, whole: bool) -> list[str]:
        """Files with the longest common end, if that is all of either path, or two parts where not `whole`.

        With `whole` all of `path` must agree: it starts at a package, not at some directory of the machine.
        """
        parts = path.split("/")
        best: list[str] = []
        longest = 0
        folded = table is self._by_folded
        for candidate in table.get(parts[-1], ()):
            other = (candidate.casefold() if folded else candidate).split("/")
            n = _common_end(parts, other)
            if n != len(parts) and (whole or (n != len(other) and n < 2)):
                continue
            if n > longest:
                best, longest = [candidate], n
            elif n == longest:
                best.append(candidate)
        return sorted(best)

    def _source_of(self, path: str) -> str | None:
        """The one file that a built one may come from: the same path below another folder, with a source's ending."""
        built = _BUILT.search(path)
        if built is None or "node_modules/" in path:
            return None
        names = [f"{built[1]}.{ending}" for ending in _SOURCES]
        found = {
            candidate
            for name in names
            for candidate in self._by_name.get(name.rpartition("/")[2], ())
            if f"/{candidate}".endswith(f"/{name}")
        }
        return found.pop() if len(found) == 1 else None


def _normal(written: str) -> str:
    """POSIX, without scheme, drive, `.` and leading `..`."""
    text = written.strip().replace("\\", "/")
    if scheme := _SCHEME.match(text):
        text = unquote(_QUERY.sub("", text[scheme.end() :]))
    text = _DRIVE.sub("", _LONG.sub("", text))
    parts: list[str] = []
    for part in text.split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part not in ("", ".", ".."):
            parts.append(part)
    return "/".join(parts)


def _common_end(one: list[str], other: list[str]) -> int:
    n = 0
    for a, b in zip(reversed(one), reversed(other), strict=False):
        if a != b:
            break
        n += 1
    return n
