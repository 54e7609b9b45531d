"""Which paths a tree holds. Git answers, for git trees and for all others.

Outside of git the same command runs with an empty repository beside the tree: nobody reads .gitignore files as
exactly as git does, and it saves a dependency and a second set of rules.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from agentctx import vcs

# Never sources, even where nobody ignores them.
IGNORED: tuple[str, ...] = (
    "node_modules",
    "__pycache__",
    ".venv",
    "venv",
    ".tox",
    ".nox",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
    ".eggs",
    "*.egg-info",
    ".idea",
    ".agentctx",
)
IGNORED_OUTSIDE_GIT = (*IGNORED, "dist", "build", "target", ".hg", ".svn")


@dataclass(frozen=True, slots=True)
class Listing:
    """Raw paths relative to the root, POSIX, sorted, without repetition; a folder ends in `/`."""

    paths: tuple[bytes, ...]
    is_git: bool
    notes: tuple[str, ...] = ()


def list_tree(root: Path) -> Listing:
    """All candidates: tracked and untracked files that are not ignored."""
    try:
        inside = vcs.text(root, "rev-parse", "--is-inside-work-tree") == "true"
    except vcs.GitError as error:
        notes = (f"listed without git: {error.stderr or error.message}",) if (root / ".git").exists() else ()
        return Listing(_outside(root), is_git=False, notes=notes)
    paths = _list(root, "--cached", "--others", patterns=IGNORED) if inside else ()
    if not paths and vcs.top_level(root) != root:
        return Listing(_outside(root), is_git=False, notes=("listed without git: its repository ignores this folder",))
    return Listing(paths, is_git=True)


def _list(root: Path, *args: str, patterns: tuple[str, ...], git: tuple[str, ...] = ()) -> tuple[bytes, ...]:
    excluded = [f"--exclude={pattern}/" for pattern in patterns]
    command = ("-c", "core.fsmonitor=false", *git, "ls-files", "-z", "--exclude-standard", *args, *excluded)
    out = vcs.run(root, *command)
    return tuple(sorted({path for path in out.split(b"\0") if path}))


def _outside(root: Path) -> tuple[bytes, ...]:
    with tempfile.TemporaryDirectory(prefix="agentctx-list-") as folder:
        vcs.run(Path(folder), "init", "--quiet", "--bare", ".")
        git = (f"--git-dir={folder}", f"--work-tree={root}")
        found = _list(root, "--others", patterns=IGNORED_OUTSIDE_GIT, git=git)
    return tuple(path for path in found if not path.startswith(b".git/"))
