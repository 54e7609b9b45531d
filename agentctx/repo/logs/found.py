"""What one format finds in one log, before paths are mapped to the repository. Bounded, because logs aren't.

Every item carries `at`, the index of its line in the cleaned log, so that the finds of several formats merge in
log order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

MAX_ERRORS = 2_000
MAX_TRACES = 500
MAX_FRAMES = 200  # of one traceback; endless recursion has thousands
MAX_TESTS = 5_000
MAX_QUOTED = 4_000
MAX_BLOCK_CHARS = 2_000_000


@dataclass(frozen=True, slots=True)
class RawFrame:
    """A frame as written in the log."""

    path: str
    line: int
    function: str | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """One traceback, outermost frame first."""

    at: int
    frames: tuple[RawFrame, ...]


@dataclass(frozen=True, slots=True)
class RawTest:
    """A failing test as written. `path` is '' where only its name is known."""

    at: int
    path: str
    names: tuple[str, ...]
    param: str | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """Lines `at..end` about one failure. `test` is set when the failure has a name."""

    at: int
    end: int
    lines: tuple[str, ...]
    frames: tuple[RawFrame, ...] = ()
    test: RawTest | None = None
    label: str = ""  # 'FAILED', 'ERROR at setup of', ...


@dataclass(slots=True)
class Found:
    """Collects finds; what exceeds a bound is counted in `dropped` by kind."""

    traces: list[Trace] = field(default_factory=list)
    tests: list[RawTest] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)  # text -> first line, distinct
    quoted: list[tuple[str, str]] = field(default_factory=list)  # (path as written, source line that the log quotes)
    blocks: list[Block] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    _seen: set[tuple[RawFrame, ...]] = field(default_factory=set)
    _named: set[tuple[str, tuple[str, ...], str | None]] = field(default_factory=set)
    _block_chars: int = 0

    def __bool__(self) -> bool:
        return bool(self.traces or self.tests or self.errors or self.blocks)

    def add_trace(self, at: int, frames: list[RawFrame]) -> None:
        """Keep a traceback unless an equal one is known."""
        if len(frames) > MAX_FRAMES:
            self._drop("frames", len(frames) - MAX_FRAMES)
            frames = frames[: MAX_FRAMES // 4] + frames[-(MAX_FRAMES - MAX_FRAMES // 4) :]
        key = tuple(frames)
        if not key or key in self._seen:
            return
        if len(self.traces) >= MAX_TRACES:
            return self._drop("tracebacks")
        self._seen.add(key)
        self.traces.append(Trace(at, key))

    def add_error(self, at: int, text: str) -> None:
        text = text.strip()
        if not text or text in self.errors:
            return
        if len(self.errors) >= MAX_ERRORS:
            return self._drop("error lines")
        self.errors[text] = at

    def add_test(self, test: RawTest) -> None:
        key = (test.path, test.names, test.param)
        if key in self._named:
            return
        self._named.add(key)
        if len(self.tests) >= MAX_TESTS:
            return self._drop("failing tests")
        self.tests.append(test)

    def add_quoted(self, path: str, line: str) -> None:
        """What exceeds the bound only ranks: it isn't counted."""
        if len(self.quoted) < MAX_QUOTED:
            self.quoted.append((path, line))

    def add_block(self, block: Block) -> None:
        size = sum(map(len, block.lines))
        if self._block_chars + size > MAX_BLOCK_CHARS:
            return self._drop("failures")
        self._block_chars += size
        self.blocks.append(block)

    def _drop(self, kind: str, n: int = 1) -> None:
        self.dropped[kind] = self.dropped.get(kind, 0) + n


class LogFormat(Protocol):
    """Parses one log, line by line. Never raises on any text.

    All formats run over all logs. While a format isn't `busy` it gets only lines that hold one of its `wakes`
    (case-sensitive literals; () = every line: don't), so that it costs nothing in other tools' logs; while it is, it
    gets every line. It turns busy on a line that only its tool writes (the whole shape of the line, by a regular
    expression), and stops being busy on the first line that can't belong to what it is reading, at the latest after a
    bounded number of lines. `at` grows by any step between two calls. Lines are without colours, CI prefixes and ends.
    """

    wakes: ClassVar[tuple[str, ...]]

    @property
    def busy(self) -> bool:
        """Whether the next line must come, whatever it holds."""

    def feed(self, at: int, line: str) -> None:
        """Take the next cleaned line."""

    def finish(self) -> Found:
        """Everything found; call once, after the last line."""


@runtime_checkable
class LooksBack(Protocol):
    """A format that wants the `back` lines before each line that wakes it, too (they come first, in order).

    So the line fed last is always the one before a line with a wake; `at` doesn't tell that, other processes' lines
    may stand between them.
    """

    back: ClassVar[int]


MakeFormat = Callable[[], LogFormat]
