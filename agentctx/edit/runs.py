"""The folder of one run in the user's cache: patch, report, and the contents before and after."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentctx.edit.apply import digest
from agentctx.edit.durable import sync_folder, write_atomically
from agentctx.edit.journal import Change
from agentctx.edit.repository import EditRepo
from agentctx.errors import DamagedState, EditError, UsageError

RECORD = "run.json"
PATCH = "edit.patch"
REPORT = "report.json"


def new_run_id() -> str:
    """Sorts by time."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{time.time_ns() % 1_000_000:06d}-{secrets.token_hex(3)}"


def runs_folder(cache: Path, repo: EditRepo) -> Path:
    return cache / "runs" / repo.key


@dataclass(frozen=True, slots=True)
class RunFolder:
    """`path` is the folder; `run.json` in it says what became of the run."""

    run: str
    path: Path

    @classmethod
    def create(cls, cache: Path, repo: EditRepo, run: str) -> RunFolder:
        path = runs_folder(cache, repo) / run
        folder = cls(run, path)
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder.mark("started", root=str(repo.root))
        except OSError as error:
            raise EditError(f"can't write the run's folder {path}: {error.strerror}") from error
        return folder

    @property
    def patch(self) -> Path:
        return self.path / PATCH

    def write_patch(self, diff: bytes) -> Path:
        write_atomically(self.patch, diff)
        return self.patch

    def write_report(self, report: Mapping[str, Any]) -> Path:
        write_atomically(self.path / REPORT, json.dumps(report, indent=1, sort_keys=True).encode())
        return self.path / REPORT

    def write_changes(self, changes: Sequence[Change]) -> None:
        """Keep the contents, by number, for `edit --undo` and for people."""
        for side in ("before", "after"):
            (self.path / side).mkdir(exist_ok=True, mode=0o700)
            for number, change in enumerate(changes):
                data = change.old if side == "before" else change.new
                if data is not None:
                    write_atomically(self.path / side / str(number), data)
            sync_folder(self.path / side)
        listing = [
            {"path": change.path, "before": digest(change.old), "after": digest(change.new)} for change in changes
        ]
        self.mark(self.state(), files=listing)

    def mark(self, state: str, **more: object) -> None:
        """Set the run's state: started, landed, undone, rolled-back, conflict, failed, ..."""
        record = {**self.record(), "run": self.run, "state": state, **more}
        write_atomically(self.path / RECORD, json.dumps(record, indent=1, sort_keys=True).encode())

    def record(self) -> dict[str, Any]:
        try:
            loaded = json.loads((self.path / RECORD).read_bytes())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise DamagedState(f"{self.path / RECORD} can't be read: {error}") from error
        assert isinstance(loaded, dict)
        return loaded

    def state(self) -> str:
        return str(self.record().get("state", ""))

    def changes(self) -> tuple[Change, ...]:
        """What `write_changes` kept.

        Raises:
            DamagedState: a content is missing or not the one that was kept.
        """
        out = []
        for number, item in enumerate(self.record().get("files", [])):
            sides = []
            for side in ("before", "after"):
                kept = self.path / side / str(number)
                data = kept.read_bytes() if item[side] and kept.is_file() else None
                if digest(data) != item[side]:
                    raise DamagedState(f"{kept} is damaged, so {item['path']} can't be restored")
                sides.append(data)
            out.append(Change(item["path"], sides[0], sides[1]))
        return tuple(out)


def prune_runs(cache: Path, repo: EditRepo, keep: int = 100) -> None:
    """Remove the oldest runs' folders beyond `keep`."""
    folder = runs_folder(cache, repo)
    known = sorted(os.listdir(folder)) if folder.is_dir() else []
    for name in known[: max(0, len(known) - keep)]:
        shutil.rmtree(folder / name)


def find_run(cache: Path, repo: EditRepo, run: str | None) -> RunFolder:
    """The run called `run` (None = the last one that landed and was not undone).

    Raises:
        UsageError: there is no such run, or it can't be undone.
    """
    folder = runs_folder(cache, repo)
    known = sorted(os.listdir(folder)) if folder.is_dir() else []
    if run is not None:
        if run not in known:
            raise UsageError(f"there is no run {run!r} in {folder}")
        found = RunFolder(run, folder / run)
        if found.state() != "landed":
            raise UsageError(f"run {run} can't be undone: its state is {found.state()!r}")
        return found
    for name in reversed(known):
        found = RunFolder(name, folder / name)
        if found.state() == "landed":
            return found
    raise UsageError("no run has landed in this repository, so there is nothing to undo")
