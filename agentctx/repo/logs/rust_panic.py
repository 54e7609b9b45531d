"""Rust's panics anywhere in a log, before and after 1.73, with or without a backtrace. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.found import Found, RawFrame
from agentctx.repo.logs.section import Section

_HEAD = re.compile(
    r"^.*?thread '(?P<thread>[^']*)'(?: \(\d+\))? panicked at "
    r"(?:(?P<path>[^':]*[^':\s]):(?P<line>\d+):\d+:|'(?P<old>.*))$"
)
_OLD_END = re.compile(r"^(?P<message>.*)', (?P<path>[^':]*):(?P<line>\d+):\d+$")
_STEP = re.compile(r"^\s*(?P<lead>[│|]? *)(?P<n>\d+): (?:\s*0x[0-9a-f]+ - )?(?P<name>\S.*)$")
_PLACE = re.compile(r"^[\s│|]+at (?P<path>\S.*?):(?P<line>\d+)(?::\d+)?$")
_BACKTRACE = re.compile(r"^(?:Stack b|stack b|B)acktrace(?: omitted.*)?:?$")
_END = re.compile(
    r"^note: (?:run with|Some details|[Bb]acktrace|panic did not)"
    r"|^(?:test |failures:|---- |thread '|error: |running \d|    [\w:]+$)"
)
_INTERNAL = re.compile(
    r"^(?:<?(?:std|core|alloc|test|rust_begin_unwind|__rust|__libc_start|_start|main$|backtrace)(?:::|\b)|<unknown>)"
)
MAX_MESSAGE = 40  # lines
MAX_STEPS = 400


class RustPanicFormat:
    """The place and the message of a panic, then the steps of its backtrace."""

    wakes: ClassVar[tuple[str, ...]] = (" panicked at ", "stack backtrace:", "Stack backtrace:")

    def __init__(self) -> None:
        self._found = Found()
        self._section: Section | None = None
        self._place: RawFrame | None = None
        self._message: list[str] = []
        self._old = False  # the message stands before the place and isn't complete
        self._frames: list[RawFrame] | None = None  # of the backtrace, innermost first
        self._step: tuple[int, str, str] | None = None  # line index, line, name

    @property
    def busy(self) -> bool:
        return self._section is not None

    def feed(self, at: int, line: str) -> None:
        if head := _HEAD.match(line):
            self._close()
            self._head(at, line, head)
        elif self._section is None:
            if _BACKTRACE.match(line):
                self._section, self._frames = Section(at), []
                self._section.add(at, line)
        elif self._frames is not None:
            self._in_backtrace(at, line, self._section, self._frames)
        elif self._old:
            self._in_old(at, line, self._section)
        else:
            self._in_message(at, line, self._section)

    def finish(self) -> Found:
        self._close()
        return self._found

    def _head(self, at: int, line: str, head: re.Match[str]) -> None:
        self._section = Section(at)
        self._section.add(at, line)
        if head["path"] is not None:
            self._place = RawFrame(head["path"], int(head["line"]))
        else:
            self._old_line(head["old"])

    def _old_line(self, text: str) -> None:
        end = _OLD_END.match(text)
        self._message.append(end["message"] if end else text)
        self._old = end is None
        if end:
            self._place = RawFrame(end["path"], int(end["line"]))

    def _in_old(self, at: int, line: str, section: Section) -> None:
        section.add(at, line)
        self._old_line(line)
        if self._old and len(self._message) > MAX_MESSAGE:
            self._close()

    def _in_message(self, at: int, line: str, section: Section) -> None:
        if _BACKTRACE.match(line):
            self._frames = []
            section.add(at, line)
        elif _END.match(line) or len(self._message) > MAX_MESSAGE or (not line.strip() and self._message):
            self._close()
        else:
            self._message.append(line)
            section.add(at, line)

    def _in_backtrace(self, at: int, line: str, section: Section, frames: list[RawFrame]) -> None:
        if place := _PLACE.match(line):
            if self._step is not None and len(frames) < MAX_STEPS:
                name = function_of(self._step[2])
                frames.append(RawFrame(place["path"], int(place["line"]), name))
                section.add(at, f"{self._step[1]}\n{line}")
            self._step = None
        elif step := _STEP.match(line):
            self._flush(section)
            self._step = (at, line, step["name"])
        else:
            self._flush(section)
            self._close()

    def _flush(self, section: Section) -> None:
        """A step without a place: of the runtime, or built without debug information."""
        step, self._step = self._step, None
        if step is not None and not _INTERNAL.match(step[2]):
            section.add(step[0], step[1])

    def _close(self) -> None:
        section, self._section = self._section, None
        if section is None:
            return
        self._flush(section)
        for i, line in enumerate(self._message):
            self._found.add_error(section.at + i, line)
        frames = self._frames or []
        section.trace(self._found, section.at, frames)
        if not section.frames and self._place is not None:
            section.trace(self._found, section.at, [self._place])
        if section.frames or self._message:
            self._found.add_block(section.block())
        self._place, self._message, self._old, self._frames = None, [], False, None


def function_of(name: str) -> str | None:
    """`shop::cart::Cart::first::{{closure}}` -> first."""
    name = re.sub(r"::h[0-9a-f]{16}$", "", name)
    parts = [part for part in re.sub(r"<[^<>]*>", "", name).split("::") if part and not part.startswith("{")]
    last = parts[-1].strip("<> ") if parts else ""
    return last if re.fullmatch(r"\w+", last) else None
