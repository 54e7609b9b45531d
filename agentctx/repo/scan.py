"""A folder -> the files to index, each with its bytes, and what was left out, each with its reason.

Every file is read and hashed on every scan: the bytes go into the prompt anyway, and no rule about time stamps
can then serve old content.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agentctx.errors import RepoError
from agentctx.repo import scan_rules
from agentctx.repo.languages import is_test_path
from agentctx.repo.scan_list import list_tree
from agentctx.source import Skipped, SourceFile


@dataclass(frozen=True, slots=True)
class ScanResult:
    """Both tuples are sorted by path. `notes` are sentences for the report."""

    files: tuple[SourceFile, ...]
    skipped: tuple[Skipped, ...]
    is_git: bool
    notes: tuple[str, ...] = ()


def scan(root: Path, *, overlay: Mapping[str, bytes] | None = None) -> ScanResult:
    """The files under `root` that can be indexed.

    `overlay` maps POSIX paths relative to `root` to contents that replace (or add) files: unsaved buffers.

    Raises:
        RepoError: `root` is no directory, it holds nothing to index, or an overlay path leaves it.
        UnavailableError: there is no git.
    """
    if not root.is_dir():
        raise RepoError(f"not a directory: {root}", hint="give the root of a repository with --repo DIR")
    root = root.resolve()
    buffers = {_inside(path): data for path, data in (overlay or {}).items()}
    listing = list_tree(root)
    found = [*_from_disk(root, listing.paths, frozenset(buffers)), *_from_overlay(buffers)]
    files = tuple(sorted((f for f in found if isinstance(f, SourceFile)), key=lambda f: f.path))
    skipped = tuple(sorted((s for s in found if isinstance(s, Skipped)), key=lambda s: s.path))
    if not files:
        left_out = f" ({len(skipped)} files were left out)" if skipped else ""
        raise RepoError(f"empty repository: nothing to index in {root}{left_out}", hint="is this the right folder?")
    return ScanResult(files, skipped, listing.is_git, listing.notes)


def _inside(path: str) -> str:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts:
        raise RepoError(f"not a path inside of the repository: {path!r}", hint="give it relative to the root")
    return str(pure)


def _from_disk(root: Path, raw_paths: tuple[bytes, ...], replaced: frozenset[str]) -> Iterator[SourceFile | Skipped]:
    listed = frozenset(raw_paths)
    for raw in raw_paths:
        try:
            path = raw.decode("utf-8")
        except UnicodeDecodeError:
            yield Skipped(raw.decode("utf-8", "backslashreplace"), "its name is not valid UTF-8")
            continue
        if path not in replaced:
            yield _load(root, path, listed)


def _from_overlay(buffers: Mapping[str, bytes]) -> Iterator[SourceFile | Skipped]:
    for path, data in buffers.items():
        reason = scan_rules.by_name(path) or scan_rules.by_size(len(data)) or scan_rules.by_content(path, data)
        yield Skipped(path, reason) if reason is not None else _source(path, data)


def _load(root: Path, path: str, listed: frozenset[bytes]) -> SourceFile | Skipped:
    """Reads one file, or says why not."""
    full = root / path
    try:
        info = full.lstat()
        reason = _by_kind(root, full, path, info, listed) or scan_rules.by_name(path)
        if reason is None:
            reason = scan_rules.by_size(full.stat().st_size)
        if reason is not None:
            return Skipped(path, reason)
        data = full.read_bytes()
    except FileNotFoundError:
        return Skipped(path, "vanished: git lists it, but it is not in the work tree")
    except OSError as error:
        return Skipped(path, f"can't be read: {error.strerror or error}")
    reason = scan_rules.by_size(len(data)) or scan_rules.by_content(path, data)
    return Skipped(path, reason) if reason is not None else _source(path, data)


def _by_kind(root: Path, full: Path, path: str, info: os.stat_result, listed: frozenset[bytes]) -> str | None:
    """Why what stands at the path is no file of this tree."""
    if stat.S_ISLNK(info.st_mode):
        return _by_link(root, full, listed)
    if stat.S_ISDIR(info.st_mode):
        return "another git repository" if path.endswith("/") else "a submodule"
    return None if stat.S_ISREG(info.st_mode) else "not a regular file"


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


def _source(path: str, data: bytes) -> SourceFile:
    return SourceFile(
        path=path,
        data=data,
        digest=hashlib.sha256(data).hexdigest(),
        language=scan_rules.language_by_content(path, data),
        is_test=is_test_path(path),
    )
