"""A failure of a test runner for JavaScript while it is read: its lines and its frames. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentctx.repo.logs.found import Block, Found, RawFrame, RawTest
from agentctx.repo.logs.javascript import is_internal, outermost_first, stack_line, test_path

MAX_LINES = 200  # of one failure


@dataclass(slots=True)
class Reading:
    """`path` is '' where only frames can tell it."""

    at: int
    names: tuple[str, ...]
    path: str = ""
    lines: list[str] = field(default_factory=list)
    frames: list[RawFrame] = field(default_factory=list)  # as written, innermost first
    label: str = "FAILED"

    def add(self, line: str) -> None:
        """Keep a line, and the frame that it may be; lines of the runtime's own frames are noise."""
        frame = stack_line(line)
        if len(self.lines) >= MAX_LINES or (frame is not None and is_internal(frame)):
            return
        self.lines.append(line)
        if frame is not None:
            self.frames.append(frame)

    @property
    def test(self) -> RawTest:
        """The failing test; where nothing tells its file, `path` is ''."""
        return RawTest(self.at, self.path or test_path(outermost_first(self.frames)), self.names)

    def close(self, found: Found, end: int) -> None:
        """Add the test and its block. `end` is the index of the first line after it."""
        frames = outermost_first(self.frames)
        found.add_trace(self.at, frames)
        found.add_test(self.test)
        lines = tuple(line.rstrip() for line in self.lines if line.strip())
        found.add_block(Block(self.at, max(self.at, end - 1), lines, tuple(frames), self.test, self.label))
