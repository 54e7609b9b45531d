"""The user's tree as a commit: staged, unstaged and untracked files, ignored ones left out.

A copy of the index is used, so the user's own index, branch and stash stay as they are.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agentctx import vcs
from agentctx.edit.paths import PathRules
from agentctx.edit.repository import NO_HOOKS, EditRepo
from agentctx.errors import ConflictError, EditRefused

REF_PREFIX = "refs/agentctx/"
_IDENTITY = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "agentctx"), ("EMAIL", "agentctx@localhost"))
}
_GITLINK = "160000"


@dataclass(frozen=True, slots=True)
class TreeEntry:
    mode: str  # '100644', '100755', '120000' (link), '160000' (submodule)
    oid: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A commit of the whole tree, kept alive by `ref`."""

    repo: EditRepo
    run: str
    commit: str
    ref: str
    entries: Mapping[str, TreeEntry]

    @property
    def submodules(self) -> tuple[str, ...]:
        return tuple(sorted(path for path, entry in self.entries.items() if entry.mode == _GITLINK))


def take_snapshot(repo: EditRepo, run: str) -> Snapshot:
    """Commit the tree as it is now to `refs/agentctx/<run>`.

    Raises:
        GitError: git can't read a file, or the disk is full.
    """
    with _copied_index(repo) as index:
        vcs.run(repo.root, *NO_HOOKS, "-c", "advice.addEmbeddedRepo=false", "add", "-A", env={"GIT_INDEX_FILE": index})
        tree = vcs.text(repo.root, "write-tree", env={"GIT_INDEX_FILE": index})
    head = vcs.head(repo.root)
    parents = ("-p", head) if head else ()
    commit = vcs.text(repo.root, "commit-tree", tree, *parents, "-m", f"agentctx snapshot {run}", env=_IDENTITY)
    ref = REF_PREFIX + run
    vcs.run(repo.root, *NO_HOOKS, "update-ref", ref, commit)
    return Snapshot(repo, run, commit, ref, _entries(repo.root, tree))


def drop_snapshot(repo: EditRepo, run: str) -> None:
    """Let git collect the snapshot; a missing one is fine."""
    vcs.run(repo.root, *NO_HOOKS, "update-ref", "-d", REF_PREFIX + run)


@contextmanager
def _copied_index(repo: EditRepo) -> Iterator[str]:
    """Path of a private copy of the index (of none, before the first `git add`)."""
    with tempfile.TemporaryDirectory(prefix="agentctx-index-") as folder:
        copy = Path(folder) / "index"
        index = repo.root / vcs.text(repo.root, "rev-parse", "--git-path", "index")
        if index.exists():
            shutil.copy2(index, copy)  # with its time, by which git knows the entries that it must look at again
        yield str(copy)


def _entries(root: Path, tree: str) -> dict[str, TreeEntry]:
    out = vcs.run(root, "ls-tree", "-r", "-z", "--full-tree", tree)
    entries = {}
    for record in out.split(b"\0"):
        if record:
            meta, _, path = record.partition(b"\t")
            mode, _, oid = meta.decode().split(" ")
            entries[os.fsdecode(path)] = TreeEntry(mode, oid)
    return entries


@dataclass(slots=True)
class SnapshotFiles:
    """The user's own bytes of the snapshot's files, read once each. (Blobs may differ from them by git's filters.)"""

    snapshot: Snapshot
    rules: PathRules
    _known: dict[str, bytes] = field(default_factory=dict)

    def read(self, path: str) -> bytes:
        """Bytes of a file at the time of the snapshot.

        Raises:
            EditRefused: a path that must not be edited, an ignored file or one inside a submodule.
            FileNotFoundError: there is no such file.
            ConflictError: the file was changed since the snapshot.
        """
        inner = self.rules.check(path)
        if inner not in self._known:
            self._known[inner] = self._read(inner)
        return self._known[inner]

    def read_or_none(self, path: str) -> bytes | None:
        try:
            return self.read(path)
        except FileNotFoundError:
            return None

    def _read(self, path: str) -> bytes:
        root = self.snapshot.repo.root
        inside = [link for link in self.snapshot.submodules if path == link or path.startswith(link + "/")]
        if inside:
            raise EditRefused(f"{path} lies in the submodule {inside[0]}", hint="run agentctx in the submodule")
        entry = self.snapshot.entries.get(path)
        if entry is None:
            return self._missing(path)
        try:
            data = (root / path).read_bytes()
        except FileNotFoundError as error:
            raise ConflictError(f"{path} was removed after the run started") from error
        except OSError as error:
            raise EditRefused(f"{path} can't be read: {error.strerror}") from error
        oid = vcs.run(root, "hash-object", f"--path={path}", "--stdin", stdin=data).decode().strip()
        if oid != entry.oid:
            raise ConflictError(f"{path} was changed after the run started")
        return data

    def _missing(self, path: str) -> bytes:
        root = self.snapshot.repo.root
        if not (root / path).exists():
            raise FileNotFoundError(path)
        if vcs.run(root, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", path):
            raise EditRefused(f"{path} is ignored by git, so it is not part of the snapshot")
        raise ConflictError(f"{path} was created after the run started")
