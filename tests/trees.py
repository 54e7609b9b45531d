"""Small git repositories for tests."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentctx.vcs import clean_environment

ROOT = Path(__file__).parents[1]
REPOS = ROOT / "fixtures" / "repos"
META = ("manifest.toml", "*.log", "*.patch")  # of the fixture projects: not a part of them


@dataclass(frozen=True)
class Repo:
    """A git work tree; `name` is the fixture project that it is a copy of, if it is one."""

    root: Path

    @property
    def name(self) -> str:
        return self.root.name

    @property
    def log(self) -> bytes:
        """The fixture project's failing log."""
        return (REPOS / self.name / "failure.log").read_bytes()

    def git(self, *args: str) -> str:
        identity = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgSign=false")
        done = subprocess.run(
            ["git", *identity, *args], cwd=self.root, env=clean_environment(), capture_output=True, check=True
        )
        return done.stdout.decode("utf-8", "surrogateescape")

    def write(self, files: Mapping[str, bytes | str]) -> None:
        for path, data in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_bytes(data if isinstance(data, bytes) else data.encode())

    def commit(self, files: Mapping[str, bytes | str] | None = None) -> str:
        """Write `files`, commit everything, and return the commit's id."""
        self.write(files or {})
        self.git("add", "-A")
        self.git("commit", "-qm", "c", "--allow-empty")
        return self.git("rev-parse", "HEAD").strip()
