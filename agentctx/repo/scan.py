"""A folder -> the files to index, each with its bytes, and what was left out, each with its reason.

For small trees whose bytes are all wanted: `survey` reads only what has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentctx.errors import RepoError
from agentctx.repo.examine import judged, load
from agentctx.repo.looks import ToRead, look
from agentctx.repo.scan_list import list_tree
from agentctx.repo.scan_rules import by_name
from agentctx.repo.survey import checked_buffers, nothing_to_index
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
    buffers = checked_buffers(overlay)
    listing = list_tree(root)
    looked = list(look(root, listing.paths, frozenset(buffers), {}))
    found = {one.path: _verdict(root, one) for one in looked if isinstance(one, ToRead)}
    found |= {path: by_name(path) or judged(path, data) for path, data in buffers.items()}
    files = tuple(file for _, file in sorted(found.items()) if isinstance(file, SourceFile))
    skipped = [*listing.left_out, *(one for one in looked if isinstance(one, Skipped))]
    skipped += [Skipped(path, reason) for path, reason in found.items() if isinstance(reason, str)]
    skipped.sort(key=lambda one: one.path)
    if not files:
        raise nothing_to_index(root, len(skipped))
    return ScanResult(files, tuple(skipped), listing.is_git, listing.notes)


def _verdict(root: Path, one: ToRead) -> SourceFile | str:
    if one.reason is not None:
        return one.reason
    data = load(root, one.path)
    return data if isinstance(data, str) else judged(one.path, data)
