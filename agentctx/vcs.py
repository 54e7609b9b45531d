"""Git, through GitPython's command wrapper. The only module that runs git.

Every call runs without the GIT_* variables that hooks export (GIT_DIR, GIT_INDEX_FILE, ...), so that a command
speaks about the repository that it was given and about nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from agentctx.diff import DiffFile, Ranges, parse
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

    command = _command(args, env)
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


def _command(args: tuple[str, ...], env: Mapping[str, str] | None = None) -> list[str]:
    # Replace, not add: GitPython merges `env` into os.environ, so unset what hooks export.
    scrubbed = clean_environment(env)
    removed = {key for key in os.environ if key.startswith("GIT_") and key not in scrubbed}
    command = ["git", "--literal-pathspecs", *args]
    return ["env", *[flag for key in sorted(removed) for flag in ("-u", key)], *command] if removed else command


def run_bounded(cwd: Path, *args: str, limit: int) -> tuple[bytes, bool]:
    """At most `limit` bytes of stdout of `git ARGS`, and whether that is all; git is stopped when there is more.

    Raises:
        GitError: git answered with an error.
        UnavailableError: there is no git.
    """
    from git import Git
    from git.exc import GitCommandNotFound

    try:
        handle = Git(str(cwd)).execute(_command(args), as_process=True)  # it ends the process when it is let go of
    except GitCommandNotFound as error:
        raise UnavailableError("git was not found", hint="install git and put it on PATH") from error
    process = handle.proc
    assert process is not None
    errors: list[bytes] = []  # read beside the output: a git with much to complain about must not wait for us
    reader = Thread(target=lambda: errors.append(process.stderr.read() if process.stderr is not None else b""))
    reader.start()
    with process:
        out = bytes(process.stdout.read(limit + 1)) if process.stdout is not None else b""
        if len(out) > limit:
            process.kill()
        reader.join()
    if len(out) > limit:
        return out[:limit], False
    if process.returncode:
        stderr = os.fsdecode(b"".join(errors)).strip()
        raise GitError(f"git failed: {stderr}", status=process.returncode, stderr=stderr)
    return out, True


def matching_files(root: Path, literal: str) -> list[str]:
    """Files of the work tree, untracked ones included, that hold a literal text; sorted.

    Raises:
        GitError: not a repository.
    """
    try:
        out = run(root, "grep", "-lIzF", "--untracked", "--full-name", "-e", literal)
    except GitError as error:
        if error.status == 1 and not error.stderr:
            return []  # nothing holds it
        raise
    return sorted(os.fsdecode(path) for path in out.split(b"\0") if path)


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
    """`head`: the commit of HEAD, None before the first one. `changed`: paths that differ from it, untracked ones
    included; `deleted`: those that are gone. Both sorted, relative to the folder that was asked about."""

    head: str | None
    changed: tuple[str, ...]
    deleted: tuple[str, ...] = ()


def status(root: Path) -> Status:
    """HEAD and what differs from it, from one git command that takes no lock and refreshes no index."""
    shape = ("--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all")
    out = os.fsdecode(run(root, "--no-optional-locks", "status", *shape, "--", "."))
    prefix = "" if (root / ".git").exists() else text(root, "rev-parse", "--show-prefix")
    commit: str | None = None
    changed: set[str] = set()
    deleted: set[str] = set()
    for entry in out.split("\0"):
        kind, _, rest = entry.partition(" ")
        if kind == "#" and rest.startswith("branch.oid "):
            commit = None if rest.endswith("(initial)") else rest.removeprefix("branch.oid ")
        elif kind == "?":
            changed.add(rest.removeprefix(prefix))
        elif kind in ("1", "u"):
            fields = rest.split(" ", 7 if kind == "1" else 9)
            gone = "D" in fields[0][1:] or fields[0] == "D."
            (deleted if gone else changed).add(fields[-1].removeprefix(prefix))
    return Status(commit, tuple(sorted(changed)), tuple(sorted(deleted - changed)))


def commit(root: Path, revision: str) -> str:
    """The id of the commit that `revision` names; never taken for an option.

    Raises:
        GitError: it names none, or several.
    """
    return text(root, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")


def merge_base(root: Path, commit: str) -> str | None:
    """The best common ancestor of a commit and HEAD; None where they have none (here: a clone may be shallow)."""
    try:
        return text(root, "merge-base", "HEAD", commit)
    except GitError:
        return None


def is_shallow(root: Path) -> bool:
    return text(root, "rev-parse", "--is-shallow-repository") == "true"


def is_merging(root: Path) -> bool:
    """Whether a merge, a cherry-pick or a revert waits to be concluded."""
    names = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD")
    asked = [arg for name in names for arg in ("--git-path", name)]
    return any((root / path).exists() for path in text(root, "rev-parse", *asked).split("\n"))


def untracked_paths(root: Path) -> tuple[str, ...]:
    """Sorted paths, relative to `root`, that git neither tracks nor ignores."""
    return _paths(run(root, "ls-files", "-z", "--others", "--exclude-standard"))


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
    return tuple(sorted({*_paths(run(root, *options, base)), *untracked_paths(root)}))


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


def staged_lines(root: Path) -> dict[str, Ranges]:
    """Per path, the (first, last) lines, 1-based and inclusive, that the staged version adds or changes.

    Before the first commit everything that is staged is added (`git diff --cached` knows that by itself).
    """
    return _added(diff(root, "--cached"))


def changed_lines(root: Path, since: str | None = None) -> dict[str, Ranges]:
    """Per path, the lines that the work tree adds or changes against a revision or HEAD (tracked files only)."""
    return _added(diff(root, since or ("HEAD" if head(root) else empty_tree(root))))


def _added(made: Diff) -> dict[str, Ranges]:
    return {file.path: file.lines for file in made.files if file.lines}


class Diff(NamedTuple):
    """`complete`: whether it was read to its end; else the files that come last by name are missing."""

    files: tuple[DiffFile, ...]
    complete: bool = True


def diff(root: Path, *args: str, limit: int | None = None) -> Diff:
    """A diff without context, in the paths of `root`; of its text at most `limit` bytes are read.

    Every setting that a user may have is given: the lines must be the same for everybody. An unmerged path is
    compared with our side.
    """
    shape = ("-U0", "--inter-hunk-context=0", "--find-renames", "--relative", "--ignore-submodules=all")
    style = ("--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/")
    side = () if "--cached" in args else ("--ours",) if not args or args[0] == "--" else ()
    command = ("-c", "core.quotePath=false", "--no-optional-locks", "diff", *shape, *style, *side, *args)
    out, complete = (run(root, *command), True) if limit is None else run_bounded(root, *command, limit=limit)
    return Diff(parse(out, complete=complete), complete)
