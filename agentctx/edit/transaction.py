"""Landing an edit in the user's tree, taking it back, and cleaning up after a crash. Never commits, never stages.

The caller of `land` holds the repository's lock (`edit.session`); `undo` and `recover` take it themselves.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentctx import vcs
from agentctx.edit import swap
from agentctx.edit.journal import NAME, Change, Journal, read_journal, remove_journal, write_journal
from agentctx.edit.lock import locked
from agentctx.edit.paths import PathRules
from agentctx.edit.repository import EditRepo, open_repo
from agentctx.edit.runs import RunFolder, find_run
from agentctx.errors import ConflictError, EditError, EditRefused, Interrupted

_LOCK = "lock"
_WAIT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Landed:
    run: str
    paths: tuple[str, ...]
    patch: Path


@dataclass(frozen=True, slots=True)
class Recovery:
    """What was found of an interrupted landing. `action`: 'completed' or 'rolled-back'."""

    run: str
    action: str
    paths: tuple[str, ...]

    def message(self) -> str:
        what = {"completed": "was complete", "rolled-back": "was rolled back"}[self.action]
        return f"run {self.run} had been interrupted; it {what} ({', '.join(self.paths)})"


def repo_lock(repo: EditRepo, *, wait_seconds: float = 0.0) -> contextlib.AbstractContextManager[None]:
    """One edit at a time per work tree; see `locked`."""
    return locked(repo.state / _LOCK, wait_seconds=wait_seconds)


def land(repo: EditRepo, changes: Sequence[Change], diff: bytes, folder: RunFolder, rules: PathRules) -> Landed:
    """Write `changes` to the user's tree: all or nothing. `diff` is the same as a patch and is kept in `folder`.

    Raises:
        ConflictError: a file isn't any more what the edit was made for; nothing was written.
        EditError: a file can't be written; nothing was.
        Interrupted: Ctrl-C; everything was rolled back.
    """
    try:
        patch = folder.write_patch(diff)
        folder.write_changes(changes)
    except OSError as error:
        raise EditError(f"can't write the run's folder {folder.path}: {error.strerror}; nothing was written") from error
    try:
        _require_old(repo.root, changes, f"nothing was written, the patch is {patch}")
        for change in changes:
            rules.check(change.path)
        if diff:
            _git_apply_check(repo.root, patch)
        folders = swap.missing_folders(repo.root, changes)
        _transact(repo, Journal(folder.run, folder.path, "land", tuple(changes), folders))
    except ConflictError:
        folder.mark("conflict")
        raise
    return Landed(folder.run, tuple(change.path for change in changes), patch)


def undo(root: Path, cache: Path, run: str | None = None) -> Landed:
    """Put back the bytes that the last landed run (or `run`) replaced.

    Raises:
        ConflictError: a file was changed after the run landed; nothing was written.
        UsageError: there is no such run.
    """
    repo = open_repo(root)
    with repo_lock(repo):
        folder = find_run(cache, repo, run)
        changes = tuple(change.reversed() for change in folder.changes())
        _require_old(repo.root, changes, f"so run {folder.run} can't be undone; nothing was written")
        folders = tuple(folder.record().get("folders", []))
        _transact(repo, Journal(folder.run, folder.path, "undo", changes, folders))
    return Landed(folder.run, tuple(change.path for change in changes), folder.patch)


def recover(root: Path) -> Recovery | None:
    """Finish or take back what a killed command left; to be called before anything else. None: nothing to do.

    Raises:
        ConflictError: a file has neither its old nor its new content: the user must decide.
        DamagedState: the journal can't be read.
    """
    repo = _quick_repo(root)
    if repo is None or not (repo.state / NAME).exists():
        return None
    with repo_lock(repo, wait_seconds=_WAIT_SECONDS):  # a living edit holds the journal for milliseconds only
        journal = read_journal(repo.state)
        return None if journal is None else _recover(repo, journal)


def _quick_repo(root: Path) -> EditRepo | None:
    """The repository at `root` without asking git: every command calls `recover`, and most have nothing to do."""
    entry = root / ".git"
    if entry.is_dir():
        return EditRepo(root.resolve(), entry.resolve())
    if entry.is_file():
        kind, _, place = entry.read_text("utf-8", "surrogateescape").strip().partition(": ")
        return EditRepo(root.resolve(), (root / place).resolve()) if kind == "gitdir" else None
    return None


def _recover(repo: EditRepo, journal: Journal) -> Recovery:
    states = {change.path: _state(repo.root, change) for change in journal.changes}
    changed = sorted(path for path, state in states.items() if state == "other")
    if changed:
        raise ConflictError(
            f"run {journal.run} was interrupted while it wrote files, and {', '.join(changed)} changed since then",
            hint=f"the contents before and after are in {journal.run_dir}; put the files as you want them, "
            f"then delete {repo.state / NAME}",
        )
    complete = all(state == "new" for state in states.values())
    if not complete:
        swap.roll_back(repo.root, journal)
    _finish(repo, journal, complete=complete)
    return Recovery(journal.run, "completed" if complete else "rolled-back", tuple(states))


def _transact(repo: EditRepo, journal: Journal) -> None:
    """Journal, stage, rename, mark, forget the journal. Any failure rolls back before it is raised."""
    try:
        repo.state.mkdir(exist_ok=True)
        write_journal(repo.state, journal)
        swap.stage(repo.root, journal)
        _require_old(repo.root, journal.changes, "nothing was written")  # again: staging took time
        swap.commit(repo.root, journal)
    except BaseException as error:
        _take_back(repo, journal)
        if isinstance(error, OSError):
            raise EditError(
                f"{error.filename or repo.root} can't be written: {error.strerror or error}; nothing was written"
            ) from error
        if isinstance(error, KeyboardInterrupt):
            raise Interrupted("interrupted; the files were put back") from error
        raise
    try:
        _finish(repo, journal, complete=True)
    except OSError as error:
        raise EditError(
            f"the files are in place, but {error.filename} can't be written: {error.strerror}",
            hint="the next agentctx command finishes it",
        ) from error


def _take_back(repo: EditRepo, journal: Journal) -> None:
    if not (repo.state / NAME).exists():
        return
    try:
        swap.roll_back(repo.root, journal)
        _finish(repo, journal, complete=False)
    except OSError as error:
        raise EditError(
            f"the files could not be put back ({error.filename}: {error.strerror})",
            hint="make room or restore the permissions, then run any agentctx command: it finishes the roll-back",
        ) from error


def _finish(repo: EditRepo, journal: Journal, *, complete: bool) -> None:
    """Clean up, say in the run's folder how it ended, and forget the journal last."""
    swap.clean_up(repo.root, journal)
    if complete != (journal.action == "land"):
        swap.remove_folders(repo.root, journal)
    done = {"land": "landed", "undo": "undone"}[journal.action]
    before = {"land": "rolled-back", "undo": "landed"}[journal.action]
    if journal.run_dir.is_dir():  # the user may have cleared the cache
        more = {"folders": list(journal.folders)} if journal.action == "land" else {}
        RunFolder(journal.run, journal.run_dir).mark(done if complete else before, **more)
    remove_journal(repo.state)


def _require_old(root: Path, changes: Sequence[Change], consequence: str) -> None:
    drifted = sorted(change.path for change in changes if _state(root, change) != "old")
    if drifted:
        raise ConflictError(f"{', '.join(drifted)} changed meanwhile: {consequence}")


def _state(root: Path, change: Change) -> str:
    """`Change.state` of the tree; 'other' where a link or a folder took the file's place."""
    try:
        if PathRules(root).check(change.path) != change.path:
            return "other"
        return change.state(swap.current(root / change.path))
    except (OSError, EditRefused):
        return "other"


def _git_apply_check(root: Path, patch: Path) -> None:
    """The kept patch must be one that `git apply` takes, so that people can land it by hand."""
    try:
        vcs.run(root, "apply", "--check", "--whitespace=nowarn", str(patch))
    except vcs.GitError as error:
        raise ConflictError(f"{error.message}; nothing was written, the patch is {patch}") from error
