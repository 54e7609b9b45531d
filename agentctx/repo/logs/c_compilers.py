"""What gcc, clang, MSVC and C#'s compiler report; linkers, CMake, make; assert(). Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.callstacks import is_runtime
from agentctx.repo.logs.compilers import Reported
from agentctx.repo.logs.found import Found, RawFrame
from agentctx.repo.logs.section import Section

_EXT = (
    r"(?:c|cc|cp|cpp|cxx|c\+\+|C|h|hh|hpp|hxx|h\+\+|H|inl|ipp|tpp|tcc|ixx|cppm|m|mm|cu|cuh|cl|S|s|asm|f|f90|F90|for"
    r"|swift|hs|zig|d|nim|v|sv|y|l|l?ex|proto|cs|fs|vb|xaml|csproj|fsproj|vbproj|props|targets|vcxproj)"
)
_PATH = rf"(?P<path>(?:[A-Za-z]:)?[^\s:(\[][^:(\n]*\.{_EXT})"
_PATTERNS = (
    re.compile(rf"^{_PATH}:(?P<line>\d+):(?:\d+:)? (?:fatal |internal compiler )?error: (?P<message>\S.*)$"),
    # MSVC, MSBuild, C#
    re.compile(
        rf"^\s*(?:\d+>)?{_PATH}\((?P<line>\d+)(?:,\d+){{0,3}}\)\s?: (?:fatal )?error "
        r"(?P<message>[A-Z]+\d+: .*?)(?: \[[^\[\]]+proj\S*\])?$"
    ),
    # linkers that know the line
    re.compile(
        rf"^(?:/\S*ld\S*: )?{_PATH}:(?P<line>\d+): (?P<message>(?:undefined reference to|multiple definition of) .*)$"
    ),
)
_PLACELESS = re.compile(
    r"^(?:\S*: )?(?P<path>)(?P<line>)(?P<message>(?:\S+\.(?:o|cpp|cc|c|a)(?::\([^)]*\))?: )?(?:undefined reference to"
    r"|multiple definition of) .*|\S+ : (?:fatal )?error LNK\d+: .*|ld: .*symbol.* not found.*|CSC : error \w+: .*"
    r"|make(?:\[\d+\])?: \*\*\* No rule to make target .*|(?:ld|/\S*ld): cannot find -l\S+.*)$"
)
_NOTE = re.compile(r"^(?P<path>(?:[A-Za-z]:)?[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? note: (?P<text>.*)$")
_FROM = re.compile(
    r"^(?P<path>(?:[A-Za-z]:)?[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? +"
    r"(?:recursively )?required (?:from|by) "
)
_INSTANCE = re.compile(r"in instantiation of .* requested here|in evaluation of|expanded from (?:macro|here)")
_STOP = re.compile(
    r"^(?:g?make(?:\[\d+\])?: |ninja: |collect2: |compilation terminated"
    r"|In file included from |\d+ (?:errors?|warnings?)"
    r"|\[\s*\d+%\]|\[\d+/\d+\]|FAILED: |Build )|: (?:warning|In \w+ )|^\S+\(\d+(?:,\d+)?\)\s?: |: warning"
)


class CCompilerFormat(Reported):
    """An error, the source, notes; with the places that lead to a template or a macro."""

    wakes: ClassVar[tuple[str, ...]] = (
        "error: ",
        ": error ",
        ": fatal error ",
        " required from ",
        "undefined reference",
        "multiple definition",
        ": error LNK",
        "*** No rule",
        "symbol(s) not found",
        "cannot find -l",
    )

    def __init__(self) -> None:
        super().__init__()
        self._caret = self._skip = False
        self._outer: list[RawFrame] = []  # places that the next error is required from, innermost first

    def match(self, line: str) -> re.Match[str] | None:
        found = next((m for pattern in _PATTERNS if (m := pattern.match(line))), None) or _PLACELESS.match(line)
        if found:
            self._caret = self._skip = False
        return found

    def feed(self, at: int, line: str) -> None:
        if outer := _FROM.match(line):
            del self._outer[20:]
            self._outer.append(RawFrame(outer["path"], int(outer["line"])))
        super().feed(at, line)

    def outer(self) -> list[RawFrame]:
        frames, self._outer = self._outer[::-1], []
        return frames

    def goes_on(self, line: str) -> bool:
        if note := _NOTE.match(line):
            self._caret, self._skip = False, is_runtime(note["path"])
            if self._section is not None and _INSTANCE.search(note["text"]) and not self._skip:
                self._section.frames.insert(0, RawFrame(note["path"], int(note["line"])))
            return True
        if not line.strip() or _STOP.search(line):
            return False
        if line.strip(" |~^") == "" and "^" in line:
            self._caret = True
            return True
        return not self._caret or line[0] in " \t"

    def keeps(self, line: str) -> bool:
        return not self._skip


class CMakeFormat:
    """`CMake Error at path:line (command):`, an indented message, the call stack; `Makefile:1: *** message`."""

    wakes: ClassVar[tuple[str, ...]] = ("CMake Error", ": *** ")
    _ERROR = re.compile(r"^CMake Error(?: at (?P<path>\S+?):(?P<line>\d+)(?: \((?P<name>[^)]*)\))?)?:?(?P<rest>.*)$")
    _CALL = re.compile(r"^  (?P<path>\S+?):(?P<line>\d+)(?: \((?P<name>[^)]*)\))?$")
    _MAKE = re.compile(r"^(?P<path>[^\s:\[]+):(?P<line>\d+): \*\*\* (?P<message>.*?)(?:  Stop\.)?$")

    def __init__(self) -> None:
        self._found = Found()
        self._section: Section | None = None
        self._frames: list[RawFrame] = []
        self._in_calls = False

    @property
    def busy(self) -> bool:
        return self._section is not None

    def feed(self, at: int, line: str) -> None:
        if error := self._ERROR.match(line):
            self._close()
            self._section, self._in_calls = Section(at), False
            self._section.add(at, line)
            if error["path"]:
                self._frames = [RawFrame(error["path"], int(error["line"]), error["name"])]
            self._found.add_error(at, error["rest"])
        elif make := self._MAKE.match(line):
            self._make(at, line, make)
        elif self._section is not None:
            self._inside(at, line, self._section)

    def finish(self) -> Found:
        self._close()
        return self._found

    def _make(self, at: int, line: str, make: re.Match[str]) -> None:
        frame = RawFrame(make["path"], int(make["line"]))
        self._found.add_trace(at, [frame])
        self._found.add_error(at, make["message"])
        section = Section(at)
        section.add(at, line)
        section.frames = [frame]
        self._found.add_block(section.block())

    def _inside(self, at: int, line: str, section: Section) -> None:
        if line.startswith("Call Stack (most recent call first):"):
            self._in_calls = True
        elif self._in_calls and (call := self._CALL.match(line)):
            self._frames.append(RawFrame(call["path"], int(call["line"]), call["name"]))
        elif (line.strip() and not line.startswith("  ")) or at - section.at > 60 or self._in_calls:
            return self._close()
        elif line.strip():
            self._found.add_error(at, line)
        section.add(at, line)

    def _close(self) -> None:
        section, self._section = self._section, None
        if section is None:
            return
        section.trace(self._found, section.at, self._frames)
        self._frames = []
        self._found.add_block(section.block())


class AssertFormat:
    """What assert() of C prints: `prog: a.c:12: main: Assertion 'x' failed.`, and what other systems print."""

    wakes: ClassVar[tuple[str, ...]] = ("Assertion ",)
    _GLIBC = re.compile(
        r"^(?:(?P<program>\S+): )?(?P<path>(?:[A-Za-z]:)?[^\s:]+):(?P<line>\d+): "
        r"(?P<name>.+?): (?P<message>Assertion .* failed\.)$"
    )
    _OTHER = re.compile(
        r"^(?P<message>Assertion failed: .+?), (?:function (?P<name>[^,]+), )?"
        r"file (?P<path>.+?), line (?P<line>\d+)\.?$"
    )
    busy = False

    def __init__(self) -> None:
        self._found = Found()

    def feed(self, at: int, line: str) -> None:
        found = self._GLIBC.match(line) or self._OTHER.match(line)
        if found is None:
            return
        name = (found["name"] or "").split("(")[0].split()
        frame = RawFrame(found["path"], int(found["line"]), name[-1].rpartition("::")[2] if name else None)
        self._found.add_trace(at, [frame])
        self._found.add_error(at, found["message"])
        section = Section(at)
        section.add(at, line)
        section.frames = [frame]
        self._found.add_block(section.block())

    def finish(self) -> Found:
        return self._found
