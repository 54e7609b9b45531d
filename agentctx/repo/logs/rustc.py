"""What rustc and clippy report: `error[E0425]: message`, then ` --> path:line:col` and the source. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.found import Found, RawFrame
from agentctx.repo.logs.section import Section

_ERROR = re.compile(r"^error(?:\[E\d+\])?: (?P<message>\S.*)$")
_ARROW = re.compile(r"^ *(?:-->|╭▸|┌─) (?P<path>\S.*\.rs):(?P<line>\d+):\d+$")
_SHORT = re.compile(r"^(?P<path>[^\s:][^:]*\.rs):(?P<line>\d+):\d+: error(?:\[E\d+\])?: (?P<message>.*)$")
_LABEL = re.compile(r"^[^`]*[\^]+ (?P<label>\S.*)$")
_QUOTED = re.compile(r"^ *\d+ (?:\|| ?[+~-]) ?(?P<source>.*)$")
MAX_LINES = 60  # of one error
MAX_MESSAGE = 6  # lines before the arrow


class RustcFormat:
    """An error is told once it has a place; `could not compile` has none."""

    wakes: ClassVar[tuple[str, ...]] = ("error[", "error: ")

    def __init__(self) -> None:
        self._found = Found()
        self._section: Section | None = None
        self._message = ""
        self._frame: RawFrame | None = None

    @property
    def busy(self) -> bool:
        return self._section is not None

    def feed(self, at: int, line: str) -> None:
        if (error := _ERROR.match(line)) or _SHORT.match(line):
            self._close()
            self._section, self._message = Section(at), error["message"] if error else ""
            self._section.add(at, line)
            if short := _SHORT.match(line):
                self._place(short)
                self._message = short["message"]
                self._close()
        elif self._section is not None:
            self._inside(at, line, self._section)

    def finish(self) -> Found:
        self._close()
        return self._found

    def _inside(self, at: int, line: str, section: Section) -> None:
        if self._frame is None:
            if arrow := _ARROW.match(line):
                self._place(arrow)
            elif not line.strip() or at - section.at > MAX_MESSAGE:
                return self._close()
        elif not line.strip() or line.startswith(("error", "warning")) or at - section.at > MAX_LINES:
            return self._close()
        elif quoted := _QUOTED.match(line):
            self._found.add_quoted(self._frame.path, quoted["source"])
        elif (label := _LABEL.match(line)) and self._message:
            self._message += f" ({label['label']})"
        section.add(at, line)

    def _place(self, found: re.Match[str]) -> None:
        self._frame = RawFrame(found["path"], int(found["line"]))

    def _close(self) -> None:
        section, frame = self._section, self._frame
        self._section = self._frame = None
        if section is None or frame is None:
            return
        self._found.add_trace(section.at, [frame])
        self._found.add_error(section.at, self._message)
        section.frames = [frame]
        self._found.add_block(section.block())
