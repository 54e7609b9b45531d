"""The git repository that is edited, and our own state inside its git folder."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from agentctx import vcs
from agentctx.errors import RepoError

NO_HOOKS = ("-c", f"core.hooksPath={os.devnull}")  # the user's hooks are for the user's own commits and checkouts


@dataclass(frozen=True, slots=True)
class EditRepo:
    """`git_dir` is this work tree's own git folder (each linked worktree has one)."""

    root: Path
    git_dir: Path

    @property
    def state(self) -> Path:
        """Lock and journal live here: found by the next command whatever its cache folder is."""
        return self.git_dir / "agentctx"

    @property
    def key(self) -> str:
        """A short name for folders outside of the repository."""
        return hashlib.sha256(os.fsencode(self.git_dir)).hexdigest()[:16]


def open_repo(root: Path) -> EditRepo:
    """The repository whose top folder is `root`.

    Raises:
        RepoError: no git work tree, or `root` is a folder inside one.
    """
    try:
        top = vcs.text(root, "rev-parse", "--show-toplevel")
        git_dir = vcs.text(root, "rev-parse", "--absolute-git-dir")
    except vcs.GitError as error:
        known = "not a git repository" in error.stderr or not error.stderr
        raise RepoError(
            f"{root}: edits need a git repository" + ("" if known else f" ({error.stderr})"),
            hint="run `git init` there first; nothing has to be committed",
        ) from error
    if not top:
        raise RepoError(f"{root}: edits need a git repository with a work tree")
    if Path(top).resolve() != root.resolve():
        raise RepoError(f"{root} is a folder inside a git repository", hint=f"use --repo {top}")
    return EditRepo(root.resolve(), Path(git_dir).resolve())
