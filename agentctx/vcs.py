"""Git, through GitPython's command wrapper. The only module that runs git.

Every call runs without the GIT_* variables that hooks export (GIT_DIR, GIT_INDEX_FILE, ...), so that a command
speaks about the repository that it was given and about nothing else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from agentctx.errors import RepoError, UnavailableError


class GitError(RepoError):
    """A git command failed. `status` is its exit code, `stderr` what it said."""

    def __init__(self, message: str, *, status: int, stderr: str) -> None:
        super().__init__(message)
        self.status = status
        self.stderr = stderr


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without GIT_* (but with the identity and configuration ones), plus `extra`."""
    kept = ("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_CONFIG", "GIT_SSH", "GIT_EXEC_PATH", "GIT_CEILING")
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_") or key.startswith(kept)}
    return {**env, **(extra or {})}


def run(cwd: Path, *args: str, env: Mapping[str, str] | None = None, stdin: bytes | None = None) -> bytes:
    """stdout of `git ARGS` run in `cwd`.

    Raises:
        GitError: git answered with an error.
        UnavailableError: there is no git.
    """
    import tempfile

    from git import Git
    from git.exc import GitCommandError, GitCommandNotFound

    # Replace, not add: GitPython merges `env` into os.environ, so unset what hooks export.
    scrubbed = clean_environment(env)
    removed = {key for key in os.environ if key.startswith("GIT_") and key not in scrubbed}
    command = ["git", "--literal-pathspecs", *args]
    if removed:
        command = ["env", *[flag for key in sorted(removed) for flag in ("-u", key)], *command]
    source = None
    try:
        if stdin is not None:
            source = tempfile.TemporaryFile()  # noqa: SIM115 - closed below, after git has read it
            source.write(stdin)
            source.seek(0)
        out = Git(str(cwd)).execute(
            command,
            env=dict(env or {}),
            istream=source,
            stdout_as_string=False,
            strip_newline_in_stdout=False,
        )
    except GitCommandNotFound as error:
        raise UnavailableError("git was not found", hint="install git and put it on PATH") from error
    except GitCommandError as error:
        stderr = str(error.stderr).strip().removeprefix("stderr: ").strip("'\n ")
        raise GitError(
            f"git {args[0] if args else ''} failed: {stderr or error.status}",
            status=int(error.status) if isinstance(error.status, int) else 1,
            stderr=stderr,
        ) from error
    finally:
        if source is not None:
            source.close()
    assert isinstance(out, bytes)
    return out


def text(cwd: Path, *args: str, env: Mapping[str, str] | None = None) -> str:
    """stdout of `git ARGS` as text, without the final newline; undecodable bytes as surrogates."""
    return os.fsdecode(run(cwd, *args, env=env)).rstrip("\n")


def top_level(path: Path) -> Path | None:
    """The root of the work tree that holds `path`, or None outside of git."""
    try:
        found = text(path, "rev-parse", "--show-toplevel")
    except GitError:
        return None
    return Path(found) if found else None


def head(root: Path) -> str | None:
    """The commit id of HEAD, or None before the first commit."""
    try:
        return text(root, "rev-parse", "--verify", "-q", "HEAD")
    except GitError:
        return None


class Status(NamedTuple):
    """`head`: the commit of HEAD, None before the first one. `changed`: paths that differ from it, deleted ones
    left out, untracked ones included; sorted, relative to the folder that was asked about."""

    head: str | None
    changed: tuple[str, ...]


def status(root: Path) -> Status:
    """HEAD and what differs from it, from one git command that takes no lock and refreshes no index."""
    shape = ("--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all")
    out = os.fsdecode(run(root, "--no-optional-locks", "status", *shape, "--", "."))
    prefix = "" if (root / ".git").exists() else text(root, "rev-parse", "--show-prefix")
    commit: str | None = None
    changed: set[str] = set()
    for entry in out.split("\0"):
        kind, _, rest = entry.partition(" ")
        if kind == "#" and rest.startswith("branch.oid "):
            commit = None if rest.endswith("(initial)") else rest.removeprefix("branch.oid ")
        elif kind == "?":
            changed.add(rest.removeprefix(prefix))
        elif kind in ("1", "u"):
            fields = rest.split(" ", 7 if kind == "1" else 9)
            if "D" not in fields[0][1:] and fields[0] != "D.":
                changed.add(fields[-1].removeprefix(prefix))
    return Status(commit, tuple(sorted(changed)))


def commit(root: Path, revision: str) -> str:
    """The id of the commit that `revision` names; never taken for an option.

    Raises:
        GitError: it names none, or several.
    """
    return text(root, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")


def changed_paths(
    root: Path, *, staged: bool = False, since: str | None = None, deleted: bool = False
) -> tuple[str, ...]:
    """Sorted paths that differ: from HEAD in the work tree (untracked included), staged, or since a revision.

    Paths are relative to `root`. Deleted ones are listed only with `deleted`.
    """
    options = ["diff", "--name-only", "-z", "--relative", "--no-renames", *([] if deleted else ["--diff-filter=d"])]
    base = since or ("HEAD" if head(root) else empty_tree(root))
    if staged:
        return _paths(run(root, *options, "--cached", base))
    untracked = run(root, "ls-files", "-z", "--others", "--exclude-standard")
    return _paths(run(root, *options, base) + untracked)


def _paths(out: bytes) -> tuple[str, ...]:
    return tuple(sorted({os.fsdecode(path) for path in out.split(b"\0") if path}))


def unstaged_paths(root: Path) -> tuple[str, ...]:
    """Sorted paths, relative to `root`, whose work tree differs from the index."""
    return _paths(run(root, "diff", "--name-only", "-z", "--relative"))


def content(root: Path, revision: str, path: str) -> bytes | None:
    """A file's bytes in a revision ('' = the index), None where it isn't in it."""
    try:
        return run(root, "cat-file", "blob", f"{revision}:./{path}")
    except GitError:
        return None


def empty_tree(root: Path) -> str:
    """The id of the empty tree (it depends on the repository's hash function)."""
    return os.fsdecode(run(root, "hash-object", "-t", "tree", "--stdin", stdin=b"")).strip()


def staged_lines(root: Path) -> dict[str, tuple[tuple[int, int], ...]]:
    """Per path, the (first, last) lines, 1-based and inclusive, that the staged version adds or changes.

    Before the first commit everything that is staged is added (`git diff --cached` knows that by itself).
    """
    return parse_added_lines(_zero_context_diff(root, "--cached"))


def changed_lines(root: Path, since: str | None = None) -> dict[str, tuple[tuple[int, int], ...]]:
    """Per path, the lines that the work tree adds or changes against a revision or HEAD (tracked files only)."""
    return parse_added_lines(_zero_context_diff(root, since or ("HEAD" if head(root) else empty_tree(root))))


def _zero_context_diff(root: Path, *args: str) -> str:
    # Every setting that a user may have is given: the lines must be the same for everybody.
    shape = ("-U0", "--inter-hunk-context=0", "--find-renames", "--relative")
    style = ("--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/")
    out = run(root, "-c", "core.quotePath=false", "diff", *shape, *style, *args)
    return out.decode("utf-8", "surrogateescape")


def parse_added_lines(diff: str) -> dict[str, tuple[tuple[int, int], ...]]:
    """The added line ranges of a `-U0` diff, by new path."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    path: str | None = None
    in_header = False
    for line in diff.split("\n"):
        if line.startswith("diff --git "):
            path, in_header = None, True
        elif in_header and line.startswith("+++ "):
            name = _unquoted(line[4:].rstrip("\t"))
            path = None if name == "/dev/null" else name.removeprefix("b/")
        elif line.startswith("@@ ") and path is not None:
            in_header = False
            new = line.split(" ")[2].removeprefix("+")
            first, _, count = new.partition(",")
            n_lines = int(count) if count else 1
            if n_lines:
                ranges.setdefault(path, []).append((int(first), int(first) + n_lines - 1))
    return {path: tuple(found) for path, found in sorted(ranges.items())}


_ESCAPES = {"a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}


def _unquoted(name: str) -> str:
    """The name that git put between quotes, as in C, because of a control character, a quote or a backslash."""
    if not name.startswith('"'):
        return name
    return re.sub(r"\\([0-7]{3}|.)", lambda m: _ESCAPES.get(m[1]) or chr(int(m[1], 8)), name[1:-1])
