"""A failure whose lines are being read, bounded: for formats of tools whose stacks `callstacks` knows. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from agentctx.repo.logs.callstacks import is_runtime
from agentctx.repo.logs.found import Block, Found, RawFrame, RawTest

MAX_HEAD = 150  # lines of one failure that are kept from its begin
MAX_TAIL = 50  # and from its end


class Section:
    """Lines of one failure from line `at` on. What lies between its head and its tail is left out."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.end = at
        self.frames: list[RawFrame] = []  # of all its traces, outermost first in each
        self._head: list[str] = []
        self._tail: deque[str] = deque(maxlen=MAX_TAIL)

    def add(self, at: int, line: str) -> None:
        """Keep a line; one of several lines is a frame."""
        self.end = max(self.end, at)
        if not line.strip():
            return
        (self._head if len(self._head) < MAX_HEAD else self._tail).append(line.rstrip())

    @property
    def lines(self) -> tuple[str, ...]:
        return (*self._head, *self._tail)

    def trace(self, found: Found, at: int, innermost_first: Sequence[RawFrame]) -> None:
        """Add a trace, its frames as most tools write them: the innermost first."""
        frames = [f for f in reversed(innermost_first) if f.line and not is_runtime(f.path)]
        found.add_trace(at, frames)
        room = max(0, 200 - len(self.frames))
        self.frames += frames[-room:] if room else []

    def block(self, test: RawTest | None = None, label: str = "", end: int | None = None) -> Block:
        last = self.end if end is None else max(self.at, end)
        return Block(self.at, last, self.lines, tuple(self.frames), test, label)
