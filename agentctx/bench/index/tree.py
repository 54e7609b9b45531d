"""A tree of any size for `bench index`: copies of a repository, each under a folder of its own and none alike."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from agentctx import vcs
from agentctx.errors import RepoError
from agentctx.repo.languages import comment_of
from agentctx.repo.scan import scan
from agentctx.source import SourceFile


def make_tree(source: Path, target: Path, *, files: int | None = None, copies: int | None = None) -> int:
    """Fills `target`, a git repository of its own, with `copies` of the indexed files of `source`, or up to `files`.

    Each file ends with a comment that no other has: equal files would be parsed once. Gives the number of files.

    Raises:
        RepoError: there is nothing to copy, or it can't be written.
    """
    found = scan(source).files
    wanted = files if files is not None else len(found) * (copies or 1)
    try:
        target.mkdir(parents=True, exist_ok=True)
        for path, data in _copies(found, wanted):
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_bytes(data)
    except OSError as error:
        raise RepoError(f"can't write a tree to {target}: {error.strerror or error}") from error
    vcs.run(target, "init", "--quiet")
    vcs.run(target, "add", "--all", "--force")
    # Committed: files that differ from HEAD are evidence, and are all loaded.
    author = ("-c", "user.name=agentctx", "-c", "user.email=agentctx@example.org", "-c", "commit.gpgSign=false")
    vcs.run(target, *author, "commit", "--quiet", "--no-verify", "--message", "copies")
    return wanted


def _copies(found: Sequence[SourceFile], wanted: int) -> Iterator[tuple[str, bytes]]:
    for number in range(wanted):
        copy, file = number // len(found) + 1, found[number % len(found)]
        opens, closes = comment_of(file.path)
        ending = f"\n{opens} copy {copy} {closes}".rstrip() + "\n"
        yield f"copy{copy:05}/{file.path}", file.data + ending.encode()


def run_json(command: Sequence[str], environment: dict[str, str]) -> str:
    """stdout of a command.

    Raises:
        RepoError: it failed; its own words are in the message.
    """
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RepoError(f"{' '.join(command[:4])} ... ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    return done.stdout
