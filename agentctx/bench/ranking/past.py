"""A history as it was before each of its commits."""

from __future__ import annotations

import os
from pathlib import Path

from agentctx import vcs
from agentctx.repo.history import LOG, WINDOW, Commit, History, commits, history


class Pasts:
    """The pasts of all commits on the line of first parents of a revision.

    Raises:
        GitError: there is no such revision.
    """

    def __init__(self, clone: Path, head: str = "HEAD") -> None:
        out = vcs.run(clone, "-c", "log.showSignature=false", "log", *LOG, "--no-color", head, "--")
        self._commits: list[Commit] = list(commits(os.fsdecode(out)))
        self._at = {commit.id: n for n, commit in enumerate(self._commits)}

    def before(self, commit: str) -> History:
        """Raises: KeyError: the commit is not on that line."""
        start = self._at[commit] + 1
        return history(self._commits[start : start + WINDOW])
