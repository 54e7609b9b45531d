"""Git's diffs as evidence: staged and unstaged changes, or those since a revision, and unsaved buffers. IO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agentctx import vcs
from agentctx.config import Changes, RunOptions
from agentctx.diff import DiffFile, between
from agentctx.errors import UsageError
from agentctx.prompt import ChangeSource, FileChange
from agentctx.repo.changes import changes_of
from agentctx.report import RepoRow

DIFF_LIMIT = 16 * 1024 * 1024  # bytes of one diff that are read
LISTED = 4  # files that a note names


class Scanned(Protocol):
    """What must be known of the tree: whether it differs from HEAD, in which files, and what is indexed of it."""

    @property
    def row(self) -> RepoRow: ...

    @property
    def changed(self) -> frozenset[str]: ...

    @property
    def data(self) -> Mapping[str, bytes]: ...


@dataclass(frozen=True, slots=True)
class ReadChanges:
    """`notes` are sentences for the report."""

    changes: tuple[FileChange, ...] = ()
    notes: tuple[str, ...] = ()


def read_changes(
    root: Path,
    index: Scanned,
    options: RunOptions,
    tests: Sequence[str] = (),
    overlay: Mapping[str, bytes] | None = None,
) -> ReadChanges:
    """The changes that count as evidence under `options`. `tests`: paths whose diff is read however long all is.

    Raises:
        UsageError: `--since` outside of git, or a revision that doesn't exist.
    """
    if options.since is None and options.changes is Changes.NONE:
        return ReadChanges()
    buffers = {path: between(_saved(root, path), data) for path, data in sorted((overlay or {}).items())}
    notes: list[str] = []
    if options.since is not None and vcs.top_level(root) is None:
        raise UsageError(f"--since {options.since}: {root} is not in a git work tree")
    if options.since is not None:
        base = since_base(root, options.since, notes)
        diffs = {ChangeSource.SINCE: _diff(root, (base,), tests, notes).files}
        untracked = vcs.untracked_paths(root)
    else:
        diffs, untracked = _uncommitted(root, index, tests, notes)
    changes = changes_of(diffs, index.data, buffers, untracked)
    if options.changes is Changes.STAGED:
        changes = tuple(change for change in changes if change.source is ChangeSource.STAGED)
    return ReadChanges(changes, (*_said(changes, options.since), *notes))


def since_base(root: Path, since: str, notes: list[str]) -> str:
    """The commit to compare with: the revision, or where HEAD left its line (with a note).

    Raises:
        UsageError: there is no such revision.
    """
    try:
        commit = vcs.commit(root, since)
    except vcs.GitError as error:
        hint = "give a branch, a tag or a commit"
        if vcs.is_shallow(root):
            hint += "; this clone is shallow: `git fetch --unshallow` brings older ones"
        raise UsageError(f"--since: there is no revision '{since}'", hint=hint) from error
    base = vcs.merge_base(root, commit)
    if base is None:
        notes.append(f"'{since}' and HEAD have no commit in common here; the change is the whole difference")
        return commit
    if base != commit:
        notes.append(f"'{since}' has moved on; the change is counted from {base[:10]}, where HEAD left it")
    return base


Diffs = dict[ChangeSource, tuple[DiffFile, ...]]


def _uncommitted(root: Path, index: Scanned, tests: Sequence[str], notes: list[str]) -> tuple[Diffs, tuple[str, ...]]:
    """Staged and unstaged diffs, and the untracked files: what status calls changed and no diff knows."""
    if not index.row.dirty:
        return {}, ()
    staged, unstaged = _diff(root, ("--cached",), tests, notes), _diff(root, (), tests, notes)
    if staged.files and vcs.is_merging(root):
        notes.append("a merge is in progress: what it brings in counts as staged")
    known = {file.path for made in (staged, unstaged) for file in made.files}
    complete = staged.complete and unstaged.complete
    untracked = tuple(sorted(index.changed - known)) if complete else vcs.untracked_paths(root)
    return {ChangeSource.STAGED: staged.files, ChangeSource.UNSTAGED: unstaged.files}, untracked


def _diff(root: Path, args: tuple[str, ...], tests: Sequence[str], notes: list[str]) -> vcs.Diff:
    """The diff; of a very large one the files that come first, and those of the tests."""
    made = vcs.diff(root, *args, limit=DIFF_LIMIT)
    if made.complete:
        return made
    notes.append(f"the diff is larger than {DIFF_LIMIT // 1024 // 1024} MiB: its first {len(made.files)} files count")
    files = {file.path: file for file in made.files}
    if tests:
        more = vcs.diff(root, *args, "--", *sorted(set(tests)), limit=DIFF_LIMIT)
        files.update((file.path, file) for file in more.files)
    return vcs.Diff(tuple(files[path] for path in sorted(files)), complete=False)


def _saved(root: Path, path: str) -> bytes:
    """What is on disk; nothing where the buffer is all that there is."""
    try:
        return (root / path).read_bytes()
    except OSError:
        return b""


# ---------------------------------------------------------------- what the report says


def _said(changes: Sequence[FileChange], since: str | None) -> tuple[str, ...]:
    """One note that counts the changes and names the edited source files."""
    if not changes:
        return () if since is None else (f"nothing differs from '{since}' in files that are indexed",)
    words = {ChangeSource.SINCE: f"changed since '{since}'"}
    counts = []
    for source in ChangeSource:
        paths = {change.path for change in changes if change.source is source}
        if paths:
            counts.append(f"{len(paths)} {'file' if len(paths) == 1 else 'files'} {words.get(source, source.value)}")
    code = sorted({change.path for change in changes if not change.is_test})
    named = f"; edited code: {', '.join(code[:LISTED])}{' ...' if len(code) > LISTED else ''}" if code else ""
    return (f"changes that count as evidence: {', '.join(counts)}{named}",)
