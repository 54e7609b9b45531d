"""Paths as logs write them -> paths of the repository, by their longest common end. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

_INSTALLED = re.compile(r"(?:^|/)(?:site|dist)-packages/(?:[^/]+\.egg/)?(.+)$")
_STDLIB = re.compile(
    r"(?:^|/)lib(?:64)?/(?:python|pypy)\d[\d.]*/|(?:^|/)python\d*(?:/[\d.]+)?(?:/x\d+)?/lib/|^<", re.IGNORECASE
)
_DRIVE = re.compile(r"^[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class Located:
    """`path` is repository-relative when `in_repo`, else as written. `rivals`: equally good candidates."""

    path: str
    in_repo: bool
    rivals: tuple[str, ...] = ()


class PathMap:
    """Looks up written paths; answers are remembered."""

    def __init__(self, repo_paths: Collection[str]) -> None:
        self._paths = frozenset(repo_paths)
        self._by_name: dict[str, list[str]] = {}
        for path in sorted(self._paths):
            self._by_name.setdefault(path.rpartition("/")[2], []).append(path)
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
        best = self._candidates(installed[1] if installed else path, whole=installed is not None)
        if len(best) == 1:
            return Located(best[0], True)
        return Located(written, False, tuple(best))

    def _candidates(self, path: str, *, whole: bool) -> list[str]:
        """Files with the longest common end, if that is all of either path, or two parts where not `whole`.

        With `whole` all of `path` must agree: it starts at a package, not at some directory of the machine.
        """
        parts = path.split("/")
        best: list[str] = []
        longest = 0
        for candidate in self._by_name.get(parts[-1], ()):
            other = candidate.split("/")
            n = _common_end(parts, other)
            if n != len(parts) and (whole or (n != len(other) and n < 2)):
                continue
            if n > longest:
                best, longest = [candidate], n
            elif n == longest:
                best.append(candidate)
        return best


def _normal(written: str) -> str:
    """POSIX, without drive, `.` and leading `..`."""
    parts: list[str] = []
    for part in _DRIVE.sub("", written.strip()).replace("\\", "/").split("/"):
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
