"""Stack traces of JavaScript anywhere in a log: V8 with causes, node's place of an uncaught error, Firefox. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.found import Block, Found, RawFrame
from agentctx.repo.logs.javascript import SCRIPT, frame_of, is_internal, is_placeless, outermost_first

_ERROR = re.compile(
    r"^\s*(?:\[cause\]: |Caused by: |Uncaught (?:\(in promise\) )?|\w+ \[?)?"
    r"((?:[A-Z]\w*)?(?:Error|Exception)(?: \[[\w ]+\])?(?:: .*)?)$"
)
_HEADER = re.compile(rf"^((?:file://)?(?:/|[A-Za-z]:[\\/])[^\n:]*\.(?:{SCRIPT}|json)):(\d+)$")
_INLINE = re.compile(rf"\(?([^\s():]+\.(?:{SCRIPT})): .*\((\d+):(\d+)\)")  # Babel: /x/a.js: Unexpected token (3:4)
MAX_MESSAGE = 40  # lines between an error and its first frame
MAX_LINES = 200  # of one block


class StackFormat:
    """An error line, its message, its frames; again for each cause."""

    wakes: ClassVar[tuple[str, ...]] = (
        *("  at ", "\tat ", "\u276f ", "\u203a ", "@http", "@file:", "@webpack", "Error", "Exception"),
        *(".js:", ".ts:", "sx:", ".mjs:", ".cjs:"),
    )

    def __init__(self) -> None:
        self._found = Found()
        self._start = 0
        self._lines: list[str] = []
        self._errors: list[tuple[int, str]] = []
        self._frames: list[RawFrame] = []  # of the trace that is read, innermost first
        self._all: list[RawFrame] = []  # of the block
        self._waiting = 0  # lines since the error without a frame
        self._braces = False  # inside the properties that node prints after the frames
        self.busy = False

    def feed(self, at: int, line: str) -> None:
        if frame := frame_of(line):
            self._open(at)
            self._frames.append(frame)
            self._keep(line)
            self._waiting = 0
            self._braces = line.rstrip().endswith("{")
        elif (error := _ERROR.match(line)) and not line.lstrip().startswith(("+", "-", ">")):
            self._error(at, line, error[1])
        elif header := _HEADER.match(line):
            self._close(at)
            self._open(at)
            self._all = [RawFrame(header[1], int(header[2]))]
            self._keep(line)
        elif self.busy:
            self._other(at, line)

    def finish(self) -> Found:
        self._close(self._start + len(self._lines))
        return self._found

    def _open(self, at: int) -> None:
        if not self.busy:
            self.busy, self._start, self._waiting = True, at, 0

    def _error(self, at: int, line: str, text: str) -> None:
        cause = "cause" in line.lower()[:16]
        if self._frames and not cause:
            self._close(at)
        self._open(at)
        self._end_trace(at)
        self._errors.append((at, text))
        if found := _INLINE.search(line):
            self._all.append(RawFrame(found[1], int(found[2])))
        self._keep(line)
        self._waiting = 0

    def _other(self, at: int, line: str) -> None:
        if is_placeless(line):
            self._braces = line.endswith("{")
            return self._keep(line)
        if self._frames and not self._braces:
            return self._close(at)
        self._waiting += 1
        if self._waiting > MAX_MESSAGE:
            return self._close(at)
        self._keep(line)
        if self._braces and line.startswith("}"):
            self._close(at + 1)

    def _keep(self, line: str) -> None:
        if len(self._lines) < MAX_LINES:
            self._lines.append(line)

    def _end_trace(self, at: int) -> None:
        frames = outermost_first(self._frames)
        self._found.add_trace(at, frames)
        self._all += frames
        self._frames = []

    def _close(self, at: int) -> None:
        """An error without a place may be anything: it is left to others."""
        head = list(self._all)
        if not self._errors and not head and len(self._frames) == 1:
            self._frames = []  # where something was logged, say
        self._end_trace(at)
        if self._all:
            if len(head) == 1 and not is_internal(head[0]):
                self._found.add_trace(self._start, head)
            for error in self._errors:
                self._found.add_error(*error)
            end = max(self._start, at - 1)
            lines = tuple(line for line in self._lines if line.strip())
            self._found.add_block(Block(self._start, end, lines, tuple(self._all)))
        self._lines, self._errors, self._all = [], [], []
        self.busy = self._braces = False
