"""Listed paths -> how each file looks to `lstat`, or why it is no file of this tree. Nothing is read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentctx.repo import scan_rules
from agentctx.repo.tree_cache import Look, TreeRow
from agentctx.source import Skipped


@dataclass(frozen=True, slots=True)
class ToRead:
    """A file that must be read; `reason`: why it is left out unread all the same."""

    path: str
    look: Look
    reason: str | None


Looked = Skipped | TreeRow | ToRead


def look(
    root: Path, raw_paths: tuple[bytes, ...], replaced: frozenset[str], rows: Mapping[str, TreeRow]
) -> Iterator[Looked]:
    """What is known of each listed path that is not `replaced`: its row, where that is fresh, or that it must be read.

    `Skipped` is what is no file of the tree; that isn't remembered.
    """
    listed = frozenset(raw_paths)
    base = os.fspath(root) + "/"
    for raw in raw_paths:
        try:
            path = raw.decode("utf-8")
        except UnicodeDecodeError:
            yield Skipped(raw.decode("utf-8", "backslashreplace"), "its name is not valid UTF-8")
            continue
        if path not in replaced:
            yield _one(root, base + path, path, listed, rows.get(path))


def _one(root: Path, full: str, path: str, listed: frozenset[bytes], row: TreeRow | None) -> Looked:
    try:
        info = os.lstat(full)
        if row is not None and row.is_fresh(Look.of(info)):
            return row
        is_link = stat.S_ISLNK(info.st_mode)
        reason = _by_link(root, Path(full), listed) if is_link else _by_kind(path, info.st_mode)
        if reason is not None:
            return Skipped(path, reason)
        info = os.stat(full) if is_link else info
    except FileNotFoundError:
        return Skipped(path, "vanished: git lists it, but it is not in the work tree")
    except OSError as error:
        return Skipped(path, f"can't be read: {error.strerror or error}")
    return ToRead(path, Look.of(info), scan_rules.by_name(path) or scan_rules.by_size(info.st_size))


def _by_kind(path: str, mode: int) -> str | None:
    """Why what stands at the path is no file of this tree."""
    if stat.S_ISDIR(mode):
        return "another git repository" if path.endswith("/") else "a submodule"
    if stat.S_ISREG(mode):
        return None
    return "a named pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "not a regular file"


def _by_link(root: Path, full: Path, listed: frozenset[bytes]) -> str | None:
    try:
        target = full.resolve(strict=True)
    except (OSError, RuntimeError):  # RuntimeError: a loop of links, before Python 3.13
        return "a broken symbolic link"
    if not target.is_relative_to(root):
        return "a symbolic link that leaves the repository"
    if target.is_dir():
        return "a symbolic link to a folder"
    if os.fsencode(target.relative_to(root).as_posix()) in listed:
        return f"a symbolic link to {target.relative_to(root).as_posix()}, which is indexed itself"
    return None if target.is_file() else "not a regular file"
