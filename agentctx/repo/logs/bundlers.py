"""What bundlers and transpilers of JavaScript say: esbuild, webpack and its loaders, Vite, Rolldown, Babel. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.diagnostics import add_place
from agentctx.repo.logs.found import Found, RawFrame
from agentctx.repo.logs.javascript import SCRIPT, frame_of

_FILE = rf"((?:[A-Za-z]:)?[^\s:()\[\]]+\.(?:{SCRIPT}|json|s?css|less|html))"
_HEAD = re.compile(
    r"^(?:[\u2718X\u2716] \[ERROR\] (?P<esbuild>.+)"
    r"|(?:\[tsl\] )?ERROR in (?P<webpack>\S.*)"
    r"|(?:Module|Syntax) ?[Ee]rror: .+|\[[A-Z][A-Z_]+\] .+|\[(?:vite|plugin)[^\]]*\].*"
    r"|error during build:|.*RollupError: .+)$"
)
_PLACES = (
    re.compile(rf"^\s*(?:file: |At file: |File: )?(?:file://)?{_FILE}:(\d+):\d+:?$"),
    re.compile(rf"^\s*\u256d\u2500\[ {_FILE}:(\d+):\d+ \]$"),
    re.compile(rf"^(?:\[tsl\] )?ERROR in {_FILE}\s?\(?:?(\d+)[:,]\d+(?:-\d+(?::\d+)?)?\)?$"),
    re.compile(rf"^.*Error: (?:\S* )?{_FILE}: .*\((\d+):\d+\)$"),
    re.compile(rf"^\s*{_FILE} \((\d+):\d+\)(?:: .*)?$"),
)
_NOISE = re.compile(r"^(?:npm |webpack \d|\d+ errors?|Found \d|BREAKING CHANGE|resolve ')")
MAX_LINES = 24


class BundlerFormat:
    """A head opens a message; the first place in it is its place; a line that bundlers don't write in it ends it."""

    wakes: ClassVar[tuple[str, ...]] = (
        *(
            "[ERROR] ",
            "ERROR in ",
            "\u256d\u2500[ ",
            "SyntaxError: ",
            "RollupError: ",
            "At file: ",
            "\n[",
            "during build",
        ),
    )
    back: ClassVar[int] = 1

    def __init__(self) -> None:
        self._found = Found()
        self._at = 0
        self._lines: list[str] = []
        self._frame: RawFrame | None = None

    @property
    def busy(self) -> bool:
        return bool(self._lines)

    def feed(self, at: int, line: str) -> None:
        if _HEAD.match(line):
            self._close()
            self._at, self._lines = at, [line]
            self._place(line)
        elif self._lines and (_NOISE.match(line) or len(self._lines) >= MAX_LINES or frame_of(line)):
            self._close()
        elif self._lines:
            self._lines.append(line)
            self._place(line)

    def finish(self) -> Found:
        self._close()
        return self._found

    def _place(self, line: str) -> None:
        if self._frame is None:
            found = next((found for pattern in _PLACES if (found := pattern.match(line))), None)
            self._frame = RawFrame(found[1], int(found[2])) if found else None

    def _close(self) -> None:
        """A message without a place may be anybody's."""
        lines, frame = self._lines, self._frame
        self._lines, self._frame = [], None
        if frame is None:
            return
        while lines and not lines[-1].strip():
            lines.pop()
        add_place(self._found, self._at, frame, _message(lines), lines)


def _message(lines: list[str]) -> str:
    """The head, or what comes under it where the head is only a place."""
    head = _HEAD.match(lines[0])
    if head and head["esbuild"]:
        return head["esbuild"]
    return lines[1] if head and head["webpack"] and len(lines) > 1 else lines[0]
