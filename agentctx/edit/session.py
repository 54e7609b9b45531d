"""One edit from its start to its end: lock, recovery, snapshot, worktrees, run folder; all given back at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentctx import vcs
from agentctx.edit.apply import new_contents
from agentctx.edit.checks import Place
from agentctx.edit.journal import Change
from agentctx.edit.paths import PathRules, checked_patch
from agentctx.edit.repository import EditRepo, open_repo
from agentctx.edit.runs import RunFolder, new_run_id, prune_runs, runs_folder
from agentctx.edit.snapshot import Snapshot, SnapshotFiles, drop_snapshot, take_snapshot
from agentctx.edit.transaction import Landed, Recovery, land, recover, repo_lock
from agentctx.edit.worktree import Worktrees, prune_stale
from agentctx.errors import EditError, EditRefused
from agentctx.prompt import EditPatch


@dataclass(frozen=True, slots=True)
class Applied:
    """A patch made out: what each file holds before and after (sorted by path), and the same as `git diff` says it."""

    patch: EditPatch
    changes: tuple[Change, ...]
    diff: bytes


@dataclass(frozen=True, slots=True)
class EditSession:
    """What an edit works with. `environment` is the one that checks start with."""

    repo: EditRepo
    snapshot: Snapshot
    files: SnapshotFiles
    trees: Worktrees
    folder: RunFolder
    rules: PathRules
    environment: Mapping[str, str]
    recovered: Recovery | None = None  # what a killed run had left

    @property
    def run(self) -> str:
        return self.folder.run

    @contextmanager
    def worktree(self) -> Iterator[Place]:
        """A clean checkout of the snapshot to run a check in."""
        with self.trees.open() as path:
            yield Place(path, self.repo.root, self.trees.linked_folders())

    def apply(self, patch: EditPatch, worktree: Path) -> Applied:
        """Write `patch` into a worktree.

        Raises:
            EditRefused: it touches what no edit may touch.
            EditError: its hunks don't fit.
        """
        patch = checked_patch(patch, self.rules)
        contents = new_contents(patch, self.files.read_or_none)
        contents = {path: data for path, data in contents.items() if data != self.files.read_or_none(path)}
        if not contents:
            raise EditError("the edit changes nothing")
        for path, data in contents.items():
            place = worktree / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)  # keeps the mode
        changes = tuple(Change(path, self.files.read_or_none(path), data) for path, data in contents.items())
        return Applied(patch, changes, _diff(worktree, self.snapshot.commit, sorted(contents)))

    def land(self, applied: Applied) -> Landed:
        """Write the edit to the user's tree; see `transaction.land`."""
        return land(self.repo, applied.changes, applied.diff, self.folder, self.rules)


@contextmanager
def edit_session(
    root: Path, cache: Path, environment: Mapping[str, str], *, protect: Sequence[str] = ()
) -> Iterator[EditSession]:
    """Begin an edit in the repository `root`; `cache` is the user's cache folder.

    Raises:
        RepoError: `root` is no git repository.
        ConflictError: another edit is running here.
    """
    recovered = recover(root)
    repo = open_repo(root)
    with repo_lock(repo):
        prune_runs(cache, repo)
        base = cache / "worktrees" / repo.key
        prune_stale(repo, base)
        _drop_stale_snapshots(repo, cache)
        folder = RunFolder.create(cache, repo, new_run_id())
        snapshot = take_snapshot(repo, folder.run)
        rules = PathRules(repo.root, tuple(protect))
        try:
            files = SnapshotFiles(snapshot, rules)
            trees = Worktrees(snapshot, base)
            yield EditSession(repo, snapshot, files, trees, folder, rules, environment, recovered)
        finally:
            drop_snapshot(repo, folder.run)


def _drop_stale_snapshots(repo: EditRepo, cache: Path) -> None:
    """Those of our own runs that were killed; a linked worktree's are its own."""
    ours = runs_folder(cache, repo)
    refs = vcs.text(repo.root, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/agentctx/").split("\n")
    for run in refs:
        if run and (ours / run).is_dir():
            drop_snapshot(repo, run)


def _diff(worktree: Path, commit: str, paths: Sequence[str]) -> bytes:
    """The edit as a patch: plumbing, so that no option of the user's changes its form."""
    try:
        vcs.run(worktree, "-c", "core.safecrlf=false", "add", "--", *paths)
    except vcs.GitError as error:
        raise EditRefused(f"git doesn't take the edit: {error.stderr}") from error  # e.g. a new file that is ignored
    form = ("--binary", "--full-index", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv")
    return vcs.run(
        worktree, "diff-index", "--cached", "-p", *form, "--src-prefix=a/", "--dst-prefix=b/", commit, "--", *paths
    )
