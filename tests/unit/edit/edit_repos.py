"""Real git repositories for the tests of edits, and patches for them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from agentctx.edit.apply import digest
from agentctx.edit.session import EditSession, edit_session
from agentctx.prompt import EditPatch, FileEdit, Hunk
from agentctx.spans import ByteSpan
from agentctx.vcs import clean_environment

OLD = {"a.py": b"a = 1\n", "b.sh": b"#!/bin/sh\r\necho\r\n", "d/c.txt": b"no newline"}
NEW = {"a.py": b"a = 2\n", "b.sh": b"#!/bin/sh\r\necho 1\r\n", "d/c.txt": b"still none", "n/e/w.py": b"w = 1\n"}


@dataclass(frozen=True)
class Tree:
    root: Path
    cache: Path

    def git(self, *args: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgSign=false", *args],
            cwd=self.root, env=clean_environment(), capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout

    def write(self, files: Mapping[str, bytes | str]) -> None:
        for path, data in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_bytes(data if isinstance(data, bytes) else data.encode())

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", "c")

    def session(self, **more: object) -> AbstractContextManager[EditSession]:
        # without plugins pytest starts in a third of the time
        environment = {**clean_environment(), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return edit_session(self.root, self.cache, environment, **more)  # type: ignore[arg-type]

    def state(self) -> dict[str, object]:
        """Everything that an edit must not change: bytes, modes, index, refs."""
        files: dict[str, object] = {}
        for path in sorted(self.root.rglob("*")):
            inner = path.relative_to(self.root).as_posix()
            if inner.split("/")[0] != ".git":
                files[inner] = (os.lstat(path).st_mode, path.read_bytes() if path.is_file() else None)
        index = self.root / ".git/index"
        files[".index"] = index.read_bytes() if index.exists() else None
        files[".refs"] = self.git("for-each-ref") + self.git("worktree", "list")
        return files


def replace_all(old: Mapping[str, bytes | None], new: Mapping[str, bytes]) -> EditPatch:
    """A patch that gives each file a whole new content."""
    edits = []
    for path in sorted(new):
        before = old.get(path)
        edits.append(FileEdit(path, digest(before), (Hunk(ByteSpan(0, len(before or b"")), new[path]),)))
    return EditPatch(tuple(edits))
