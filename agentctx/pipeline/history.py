"""The history of HEAD, for ranking: one git command, nothing when there is no history. IO."""

from __future__ import annotations

import os
from pathlib import Path

from agentctx import vcs
from agentctx.repo.history import LOG, WINDOW, History, commits, history

LOG_LIMIT = 8 * 1024 * 1024  # bytes of the log that are read: a history of mass edits says little


def read_history(root: Path, head: str | None) -> tuple[History | None, tuple[str, ...]]:
    """The last commits before and with `head`, in the paths of `root`, and notes. None: there is nothing to learn from.

    The oldest commit of a shallow clone seems to have made every file; it is left out.
    """
    if head is None:
        return None, ()
    command = ("-c", "log.showSignature=false", "log", *LOG, "--no-color", "--relative", "-n", str(WINDOW), head, "--")
    out, complete = vcs.run_bounded(root, *command, limit=LOG_LIMIT)
    found = list(commits(os.fsdecode(out)))
    if not complete:
        found = found[:-1]
    elif found and not found[-1].parents and vcs.is_shallow(root):
        found = found[:-1]
        note = f"the clone is shallow: recency and co-change are those of its last {len(found)} commits"
        return (history(found) if found else None), (note,)
    return (history(found) if found else None), ()
