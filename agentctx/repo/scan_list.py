"""Which paths a tree holds. Git answers, for git trees and for all others.

Outside of git the same command runs with an empty repository beside the tree: nobody reads .gitignore files as
exactly as git does, and it saves a dependency and a second set of rules.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from agentctx import vcs
from agentctx.repo.scan_folders import without_vendored
from agentctx.source import Skipped

IGNORE_FILE = ".agentctxignore"  # at the root, in the syntax of .gitignore; counts for tracked files, too
_OWN_RULES = f"--exclude-from={IGNORE_FILE}"
_ATTRIBUTES = {"linguist-vendored": "third-party code", "linguist-generated": "generated"}

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
    """Raw paths relative to the root, POSIX, sorted, without repetition; a folder ends in `/`.

    `left_out`: what is not in `paths`, though it is there and not ignored by git: other people's folders (one row
    each), and what attributes or .agentctxignore leave out.
    """

    paths: tuple[bytes, ...]
    is_git: bool
    notes: tuple[str, ...] = ()
    left_out: tuple[Skipped, ...] = ()


def list_tree(root: Path) -> Listing:
    """All candidates: tracked and untracked files that are not ignored."""
    try:
        asked = vcs.text(root, "rev-parse", "--is-inside-work-tree", "--git-path", "info/sparse-checkout")
    except vcs.GitError as error:
        notes = (f"listed without git: {error.stderr or error.message}",) if (root / ".git").exists() else ()
        return _plain(root, notes)
    inside, _, sparse = asked.partition("\n")
    paths = _list(root, "--cached", "--others", patterns=IGNORED) if inside == "true" else ()
    if not paths and vcs.top_level(root) != root:
        return _plain(root, ("listed without git: its repository ignores this folder",))
    return _tracked(root, paths, is_sparse=(root / sparse).is_file())


def _plain(root: Path, notes: tuple[str, ...]) -> Listing:
    found = without_vendored(_outside(root))
    return Listing(found.paths, is_git=False, notes=notes, left_out=found.left_out)


def _tracked(root: Path, paths: tuple[bytes, ...], *, is_sparse: bool) -> Listing:
    """What git lists, without what our own ignore file, attributes, the sparse checkout and folder names leave out."""
    notes: tuple[str, ...] = ()
    if is_sparse:
        absent = {entry[2:] for entry in _split(_ls(root, "-t", "--cached")) if entry.startswith(b"S ")}
        notes = (f"sparse checkout: {len(absent)} tracked files are not in the work tree",) if absent else ()
        paths = tuple(path for path in paths if path not in absent)
    ignored = frozenset(_split(_ls(root, "--cached", "--ignored", _OWN_RULES))) if _has_own(root) else frozenset()
    attributes = _attributes(root, paths)
    skipped = dict.fromkeys(ignored.intersection(paths), f"{IGNORE_FILE} says so")
    skipped |= {path: reason for path, reason in attributes.items() if reason is not None}
    found = without_vendored([path for path in paths if path not in skipped], attributes)
    rows = [Skipped(path.decode("utf-8", "backslashreplace"), reason) for path, reason in sorted(skipped.items())]
    return Listing(found.paths, is_git=True, notes=notes, left_out=(*found.left_out, *rows))


def _attributes(root: Path, paths: tuple[bytes, ...]) -> dict[bytes, str | None]:
    """Why .gitattributes leaves a path out; None where it says that the path is the repository's own."""
    files = [path for path in paths if path.rpartition(b"/")[2] == b".gitattributes"]
    if not any(b"linguist-" in _bytes(root / os.fsdecode(path)) for path in files):
        return {}
    names = tuple(_ATTRIBUTES)
    told = vcs.run(root, "check-attr", "-z", "--stdin", *names, stdin=b"\0".join(paths) + b"\0").split(b"\0")
    found: dict[bytes, str | None] = {}
    for path, name, value in zip(told[0::3], told[1::3], told[2::3], strict=False):
        if value in (b"set", b"true"):
            found[path] = f"{_ATTRIBUTES[name.decode()]}: .gitattributes says so"
        elif value in (b"unset", b"false"):
            found.setdefault(path, None)
    return found


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""  # the scan reports it


def _has_own(root: Path) -> bool:
    return (root / IGNORE_FILE).is_file()


def _ls(root: Path, *args: str) -> bytes:
    return vcs.run(root, "-c", "core.fsmonitor=false", "ls-files", "-z", *args)


def _split(out: bytes) -> list[bytes]:
    return [entry for entry in out.split(b"\0") if entry]


def _list(root: Path, *args: str, patterns: tuple[str, ...], git: tuple[str, ...] = ()) -> tuple[bytes, ...]:
    own = (_OWN_RULES,) if _has_own(root) else ()
    excluded = [*own, *(f"--exclude={pattern}/" for pattern in patterns)]
    command = ("-c", "core.fsmonitor=false", *git, "ls-files", "-z", "--exclude-standard", *args, *excluded)
    return tuple(sorted(set(_split(vcs.run(root, *command)))))


def _outside(root: Path) -> tuple[bytes, ...]:
    with tempfile.TemporaryDirectory(prefix="agentctx-list-") as folder:
        vcs.run(Path(folder), "init", "--quiet", "--bare", ".")
        git = (f"--git-dir={folder}", f"--work-tree={root}")
        found = _list(root, "--others", patterns=IGNORED_OUTSIDE_GIT, git=git)
    return tuple(path for path in found if not path.startswith(b".git/"))
