"""Folders of a listing that hold other people's code, each with its reason. Pure.

A name alone decides only where it can mean nothing else (`node_modules`, `Pods`). `vendor` is skipped when the package
manager that filled it left its mark; what a repository tracks in `lib`, `dist`, `build` or `out` is its own choice
and stays (what is built or minified there is told by its content). Attributes say the rest: `linguist-vendored` and
`linguist-generated` in .gitattributes, set or unset, win over these rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentctx.source import Skipped

_NAMES = {
    b"node_modules": "packages of npm",
    b"bower_components": "packages of Bower",
    b"jspm_packages": "packages of jspm",
    b"Pods": "packages of CocoaPods",
    b"Carthage": "packages of Carthage",
    b"site-packages": "installed Python packages",
    b"third_party": "third-party code",
    b"third-party": "third-party code",
    b"thirdparty": "third-party code",
    b"3rdparty": "third-party code",
}
# A path that ends so -> the folder above the mark is a package manager's.
_MARKS = (
    (b"vendor/modules.txt", "modules that `go mod vendor` copied"),
    (b"vendor/autoload.php", "packages of Composer"),
    (b"vendor/composer/installed.json", "packages of Composer"),
)
_CARGO = b"/.cargo-checksum.json"  # in each crate of `cargo vendor`


@dataclass(frozen=True, slots=True)
class Sorted:
    """`paths`: what stays, in order. `left_out`: one row per folder (its path ends in `/`), sorted."""

    paths: tuple[bytes, ...]
    left_out: tuple[Skipped, ...]


def without_vendored(paths: Sequence[bytes], own: Iterable[bytes] = ()) -> Sorted:
    """`paths` without those in other people's folders. `own`: paths that attributes call the repository's own."""
    mine = frozenset(own)
    marked = _marked(paths)
    counts: dict[bytes, int] = {}
    reasons: dict[bytes, str] = {}
    known: dict[bytes, tuple[bytes, str] | None] = {b"": None}
    kept = []
    for path in paths:
        found = _above(path.rpartition(b"/")[0], marked, known)
        if found is None or path in mine:
            kept.append(path)
            continue
        folder, reasons[found[0]] = found
        counts[folder] = counts.get(folder, 0) + 1
    rows = [Skipped(f"{_text(folder)}/", f"{reasons[folder]} ({counts[folder]} files)") for folder in sorted(counts)]
    return Sorted(tuple(kept), tuple(rows))


def _above(
    folder: bytes, marked: dict[bytes, str], known: dict[bytes, tuple[bytes, str] | None]
) -> tuple[bytes, str] | None:
    """The outermost folder around that is somebody else's. Each folder is looked at once."""
    todo = []
    while folder not in known:
        todo.append(folder)
        folder = folder.rpartition(b"/")[0]
    for below in reversed(todo):
        reason = marked.get(below) or _NAMES.get(below.rpartition(b"/")[2])
        known[below] = known[below.rpartition(b"/")[0]] or ((below, reason) if reason is not None else None)
    return known[todo[0]] if todo else known[folder]


def _marked(paths: Sequence[bytes]) -> dict[bytes, str]:
    found = {}
    for path in paths:
        for mark, reason in _MARKS:
            if path.endswith(mark) and (len(path) == len(mark) or path[-len(mark) - 1 : -len(mark)] == b"/"):
                found[path[: len(path) - len(mark)] + b"vendor"] = reason
        if path.endswith(_CARGO):
            found[path.removesuffix(_CARGO)] = "a crate that `cargo vendor` copied"
    return found


def _text(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")


def reason_above(path: str, skipped: Iterable[Skipped]) -> str | None:
    """Why a file is left out: its own row's reason, or that of a folder around it."""
    for one in skipped:
        if one.path == path or (one.path.endswith("/") and path.startswith(one.path)):
            return one.reason
    return None
