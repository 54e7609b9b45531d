"""Who is asked for the right definition of a reference, and a memory of the answers.

An oracle is another tool for the same language (a type checker's language server). It is asked file by file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agentctx.errors import UsageError


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Both 0-based; `column` counts UTF-16 code units, as language servers do."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a name is declared. `path` is relative to the repository, None outside of it."""

    path: str | None
    line: int
    column: int


Answer = tuple[Place, ...]  # all declarations of one name, sorted; () where the oracle doesn't know any


class Oracle(Protocol):
    """`name` says which tool in which version answers."""

    @property
    def name(self) -> str: ...

    def definitions(self, path: str, positions: Sequence[Position]) -> list[Answer]:
        """The declarations that each position of a file of the repository refers to.

        Raises:
            UnavailableError: the tool is not there, or it stopped answering.
        """
        ...


class RememberedOracle:
    """Asks `oracle` only what the file `store` doesn't know. `content` names the state of the repository."""

    def __init__(self, oracle: Oracle, store: Path, content: str) -> None:
        self._oracle = oracle
        self._store = store
        self._key = f"{oracle.name} {content}"
        self._known = _read(store).get(self._key, {})

    @property
    def name(self) -> str:
        return self._oracle.name

    def definitions(self, path: str, positions: Sequence[Position]) -> list[Answer]:
        known = self._known.setdefault(path, {})
        missing = [at for at in dict.fromkeys(positions) if _text(at) not in known]
        for at, answer in zip(missing, self._oracle.definitions(path, missing) if missing else (), strict=True):
            known[_text(at)] = [(place.path, place.line, place.column) for place in answer]
        return [tuple(Place(path, line, column) for path, line, column in known[_text(at)]) for at in positions]

    def save(self) -> None:
        """Writes the answers of this state of the repository; those of other states go.

        Raises:
            UsageError: the file can't be written.
        """
        try:
            self._store.write_text(json.dumps({self._key: self._known}, separators=(",", ":")), "utf-8")
        except OSError as error:
            raise UsageError(f"can't write {self._store}: {error.strerror}", hint="give another --answers") from error


_Known = dict[str, dict[str, dict[str, list[tuple[str | None, int, int]]]]]


def _read(store: Path) -> _Known:
    try:
        known: _Known = json.loads(store.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"can't read {store}: {error}", hint="remove it, or give another --answers") from error
    return known


def _text(at: Position) -> str:
    return f"{at.line}:{at.column}"
