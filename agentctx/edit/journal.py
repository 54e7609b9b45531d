"""The write-ahead journal of a landing: one file that holds all that is needed to finish it or to take it back."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentctx.edit.apply import digest
from agentctx.edit.durable import sync_folder, write_atomically
from agentctx.errors import DamagedState

_VERSION = 1
NAME = "journal.json"


@dataclass(frozen=True, slots=True)
class Change:
    """One file's content before and after; None = the file isn't there. `path` is from the repository's root."""

    path: str
    old: bytes | None
    new: bytes | None

    def state(self, data: bytes | None) -> str:
        """'old', 'new' or 'other', for the content that the file has now."""
        return {digest(self.new): "new", digest(self.old): "old"}.get(digest(data), "other")

    def reversed(self) -> Change:
        return Change(self.path, self.new, self.old)


@dataclass(frozen=True, slots=True)
class Journal:
    """`run_dir` is the run's folder in the cache, `action` 'land' or 'undo'.

    `folders` are those that the landing makes, parents first: they go when it is rolled back or undone.
    """

    run: str
    run_dir: Path
    action: str
    changes: tuple[Change, ...]
    folders: tuple[str, ...] = ()

    def temp_name(self, number: int) -> str:
        """Name of the file, beside the target, that is renamed over it; known before it is made."""
        return f".agentctx-{self.run}-{number}.tmp"

    def backup_name(self, number: int) -> str:
        return f".agentctx-{self.run}-{number}.old"


def write_journal(state: Path, journal: Journal) -> None:
    body = {
        "version": _VERSION,
        "run": journal.run,
        "run_dir": str(journal.run_dir),
        "action": journal.action,
        "folders": list(journal.folders),
        "changes": [
            {"path": change.path, "old": _pack(change.old), "new": _pack(change.new)} for change in journal.changes
        ],
    }
    write_atomically(state / NAME, json.dumps({"sum": _sum(body), "body": body}).encode())


def remove_journal(state: Path) -> None:
    (state / NAME).unlink()
    sync_folder(state)


def read_journal(state: Path) -> Journal | None:
    """The journal of an unfinished landing, or None.

    Raises:
        DamagedState: the journal can't be understood.
    """
    path = state / NAME
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        outer = json.loads(data)
        body = outer["body"]
        if outer["sum"] != _sum(body) or body["version"] != _VERSION:
            raise ValueError("wrong checksum or version")
        changes = tuple(Change(item["path"], _unpack(item["old"]), _unpack(item["new"])) for item in body["changes"])
        return Journal(body["run"], Path(body["run_dir"]), body["action"], changes, tuple(body["folders"]))
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedState(
            f"the journal {path} can't be read: {error}",
            hint="look at the files it names with `git diff`, then delete it",
        ) from error


def _sum(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _pack(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _unpack(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
