"""Python tracebacks anywhere in a log: chained, in exception groups, behind a prefix, cut at either end. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.found import Block, Found, RawFrame

_OPEN = "Traceback (most recent call last):"
FRAME = re.compile(r'^\s*File "([^"\n]+)", line (\d+)(?:, in (.+?))?\s*$')
_GROUP = re.compile(r"^\s*(?:[|+] ?)")
_GROUP_RULE = re.compile(r"^\s*(?:\+-)?\+-{4,}")
_EXCEPTION = re.compile(r"^([A-Za-z_][\w.]*(?:\[[^\]]*\])?)(?::\s(.*)|:?)$")
_CHAIN = re.compile(r"^\s*(?:The above exception was the direct cause|During handling of the above exception)")
MAX_LINES = 400  # of one block


class TracebackFormat:
    """Collects frames, exception lines and the tracebacks' text."""

    wakes: ClassVar[tuple[str, ...]] = (_OPEN, 'File "')

    def __init__(self) -> None:
        self._found = Found()
        self._frames: list[RawFrame] = []
        self._lines: list[str] = []
        self._start = 0
        self._open = False
        self._message = False  # inside the lines that continue an exception's message
        self._prefix = ""  # what the log writes before every line of the traceback
        self._in_group = False  # inside an exception group, whose lines stand behind bars
        self._all: list[RawFrame] = []

    @property
    def busy(self) -> bool:
        return self._open

    def feed(self, at: int, line: str) -> None:
        if _OPEN in line:
            self._begin(at, line)
        elif self._open:
            self._inside(at, line)
        elif 'File "' in line and FRAME.match(line):  # the log starts inside a traceback, or a lone frame
            self._begin(at, "")
            self._inside(at, line)

    def finish(self) -> Found:
        self._close_block(self._start + len(self._lines))
        return self._found

    def _begin(self, at: int, line: str) -> None:
        self._close_trace(at)
        if not self._lines:
            self._start = at
        prefix = line.split("Exception Group " + _OPEN)[0].split(_OPEN)[0]
        self._in_group = _GROUP.match(prefix) is not None
        self._prefix = "" if self._in_group else prefix
        self._open, self._message = True, False
        self._keep(line.removeprefix(self._prefix))

    def _inside(self, at: int, line: str) -> None:
        if self._prefix and line.startswith(self._prefix):
            line = line.removeprefix(self._prefix)
        bare = _GROUP.sub("", line) if self._in_group else line
        if self._in_group and _GROUP_RULE.match(line):
            self._message = False
            self._close_trace(at)
            return self._keep(line)
        if frame := FRAME.match(bare):
            self._message = False
            self._frames.append(RawFrame(frame[1], int(frame[2]), frame[3]))
            return self._keep(line)
        if self._message:
            return self._after_exception(at, line, bare)
        if bare.startswith(" "):
            if self._frames and not bare.lstrip().startswith("[Previous line"):
                self._found.add_quoted(self._frames[-1].path, bare)
            return self._keep(line)
        self._exception(at, line, bare)

    def _exception(self, at: int, line: str, bare: str) -> None:
        if _EXCEPTION.match(bare.rstrip()):
            self._found.add_error(at, bare)
            self._keep(line)
            self._close_trace(at)
            self._message = True
        elif not bare.strip() or _CHAIN.match(bare):
            self._keep(line)
        else:
            self._close_block(at)

    def _after_exception(self, at: int, line: str, bare: str) -> None:
        """Indented and diff lines belong to the message; a chain or a sibling in the group goes on; else the end."""
        if bare.startswith((" ", "- ", "+ ", "? ")) and bare.strip():
            self._found.add_error(at, bare)
            self._keep(line)
        elif not bare.strip() or _CHAIN.match(bare):
            self._keep(line)
        elif self._in_group and _GROUP.match(line):
            self._exception(at, line, bare)
        else:
            self._close_block(at)

    def _keep(self, line: str) -> None:
        if len(self._lines) < MAX_LINES:
            self._lines.append(line)

    def _close_trace(self, at: int) -> None:
        self._found.add_trace(at, self._frames)
        self._all += self._frames
        self._frames = []

    def _close_block(self, at: int) -> None:
        self._close_trace(at)
        if self._all:
            lines = tuple(line for line in self._lines if line.strip())
            self._found.add_block(Block(self._start, max(at - 1, self._start), lines, tuple(self._all)))
        self._lines, self._all = [], []
        self._open, self._message = False, False
        self._in_group, self._prefix = False, ""
