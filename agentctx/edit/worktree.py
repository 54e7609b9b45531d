"""Throw-away checkouts of a snapshot, with the user's dependency folders linked in.

Nothing is ever copied back. A worktree that outlived its process (kill -9) goes at the next start.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentctx import vcs
from agentctx.edit.repository import NO_HOOKS, EditRepo
from agentctx.edit.snapshot import Snapshot
from agentctx.errors import EditError

DEPENDENCY_FOLDERS = (".venv", "venv", "node_modules")
# Ignored files that imports need: version files that a build writes, compiled extensions. Secrets are not among them.
_GENERATED = (".py", ".pyi", ".so", ".pyd", ".dylib", ".dll")
_GENERATED_FOLDER = ".egg-info"


@dataclass(frozen=True, slots=True)
class Worktrees:
    """Opens worktrees of one snapshot below `base`."""

    snapshot: Snapshot
    base: Path
    dependencies: tuple[str, ...] = DEPENDENCY_FOLDERS

    @contextmanager
    def open(self) -> Iterator[Path]:
        """A clean checkout of the snapshot, removed at the end whatever happens.

        Raises:
            EditError: the folder can't be made (disk full, no permission).
        """
        try:
            self.base.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = Path(tempfile.mkdtemp(prefix=f"{self.snapshot.run}-", dir=self.base)).resolve()
        except OSError as error:
            raise EditError(f"can't make a worktree in {self.base}: {error.strerror}") from error
        repo = self.snapshot.repo
        try:
            vcs.run(repo.root, *NO_HOOKS, "worktree", "add", "-q", "--detach", str(path), self.snapshot.commit)
            self._link_dependencies(path)
            _copy_generated(repo.root, path)
            yield path
        finally:
            remove_worktree(repo, path)

    def linked_folders(self) -> tuple[Path, ...]:
        """Folders of the user's tree that worktrees share: imports from there are no imports of edited code."""
        root = self.snapshot.repo.root
        names = [*self.dependencies, *self.snapshot.submodules]
        return tuple(root / name for name in names if (root / name).is_dir() and not self._in_snapshot(name))

    def _link_dependencies(self, worktree: Path) -> None:
        for source in self.linked_folders():
            link = worktree / source.relative_to(self.snapshot.repo.root)
            if link.is_dir() and not any(link.iterdir()):
                link.rmdir()  # a submodule's empty place
            if not link.exists():
                link.symlink_to(source, target_is_directory=True)

    def _in_snapshot(self, name: str) -> bool:
        return any(path.startswith(f"{name}/") for path in self.snapshot.entries)


def _copy_generated(root: Path, worktree: Path) -> None:
    listing = vcs.run(root, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    for path in sorted(os.fsdecode(item) for item in listing.split(b"\0") if item):
        source, copy = root / path, worktree / path
        if path.endswith(f"{_GENERATED_FOLDER}/") and source.is_dir():
            shutil.copytree(source, copy, symlinks=True, dirs_exist_ok=True)
        elif path.endswith(_GENERATED) and source.is_file() and not source.is_symlink():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)


def remove_worktree(repo: EditRepo, path: Path) -> None:
    """Remove the checkout and git's record of it. What its links point to stays."""
    if path.is_dir():
        try:
            shutil.rmtree(path)  # unlinks links, never follows them
        except PermissionError:
            _make_writable(path)
            shutil.rmtree(path)
    elif path.exists():
        path.unlink()
    known = [found for found in _registered(repo) if found == path]
    for found in known:
        vcs.run(repo.root, *NO_HOOKS, "worktree", "remove", "--force", "--force", str(found))


def _make_writable(folder: Path) -> None:
    """A check may leave read-only folders."""
    os.chmod(folder, stat.S_IRWXU)
    for parent, names, _ in os.walk(folder):
        for name in names:
            entry = os.path.join(parent, name)
            if not os.path.islink(entry):
                os.chmod(entry, stat.S_IRWXU)


def _registered(repo: EditRepo) -> list[Path]:
    out = vcs.text(repo.root, "worktree", "list", "--porcelain")
    return [Path(line.removeprefix("worktree ")) for line in out.split("\n") if line.startswith("worktree ")]


def prune_stale(repo: EditRepo, base: Path) -> tuple[str, ...]:
    """Remove every worktree below `base`; the caller holds the repository's lock, so none is in use.

    Returns:
        The names of the removed ones, sorted.
    """
    here = base.resolve()
    stale = {path for path in _registered(repo) if path.parent == here}
    if here.is_dir():
        stale |= set(here.iterdir())
    for path in sorted(stale):
        remove_worktree(repo, path)
    return tuple(path.name for path in sorted(stale))
