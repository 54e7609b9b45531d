"""What the user asks for, and what the logs say. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from agentctx.spans import LineSpan


@dataclass(frozen=True, slots=True)
class TestRef:
    """`PATH[::NAME...][[param]]` as given; `names` are the parts after the path, without the parameter.

    `path` is '' only in what a log says of a test whose file it doesn't tell.
    """

    __test__ = False  # not a test class

    path: str
    names: tuple[str, ...] = ()
    param: str | None = None

    @property
    def id(self) -> str:
        base = "::".join((self.path, *self.names) if self.path else self.names)
        return f"{base}[{self.param}]" if self.param is not None else base


@dataclass(frozen=True, slots=True)
class FocusRef:
    """`PATH`, `PATH:LINE` or `PATH#SYMBOL` as given (focus and user pins)."""

    path: str
    line: int | None = None
    symbol: str | None = None

    @property
    def text(self) -> str:
        if self.symbol is not None:
            return f"{self.path}#{self.symbol}"
        return self.path if self.line is None else f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Task:
    """What the user asks for. `logs` are (name, raw bytes, or the file where they are many: it is streamed)."""

    request: str = ""
    tests: tuple[TestRef, ...] = ()
    focus: tuple[FocusRef, ...] = ()
    pins: tuple[FocusRef, ...] = ()
    logs: tuple[tuple[str, bytes | Path], ...] = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """One traceback frame. `path` is repository-relative when `in_repo`, else as written in the log."""

    path: str
    line: int
    function: str | None
    in_repo: bool


class ChangeSource(StrEnum):
    """Which difference a change belongs to. Untracked files and unsaved buffers are `UNSTAGED`."""

    STAGED = "staged"  # the index against HEAD
    UNSTAGED = "unstaged"  # the work tree against the index
    SINCE = "since"  # the work tree against the revision that was given


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a diff does to one file that can be indexed. A file that is staged and edited again has two of them.

    `lines` and `cuts` are lines of the file as it is indexed (the work tree, with unsaved buffers), whatever the diff
    compared. `added` and `removed` are the lines' text, without signs and context, each cut at 64 KiB.
    """

    path: str
    source: ChangeSource
    status: str  # added, modified, deleted, renamed, copied
    lines: tuple[LineSpan, ...] = ()  # added or changed, sorted
    cuts: tuple[int, ...] = ()  # lines (0 = top) after which something was removed and nothing put in its place
    added: str = ""
    removed: str = ""
    old_path: str | None = None  # of a renamed or copied file
    is_test: bool = False
    binary: bool = False  # git can't compare it: which lines changed is unknown


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the logs say, and which changes are under way.

    Frames are in log order, outermost first within each traceback.
    `excerpt` is the cleaned log text that goes into the prompt (ANSI removed, errors and frames kept).
    `notes` are sentences for the report: what was not understood, what was cut.
    """

    frames: tuple[Frame, ...] = ()
    failing: tuple[TestRef, ...] = ()
    error_lines: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()  # identifiers, most telling first
    excerpt: str = ""
    text: str = ""  # the whole cleaned log, for lexical ranking
    notes: tuple[str, ...] = ()
    changes: tuple[FileChange, ...] = ()  # by path, then source; deleted files too
