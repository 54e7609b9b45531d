"""Stack traces of Java, Kotlin, Scala, .NET, Ruby, PHP and native code anywhere in a log. Pure.

One reader, one dialect each: an error line, then frames (innermost first), then perhaps a cause.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from agentctx.repo.logs.callstacks import dotnet_frame, jvm_frame, native_frame, php_frame, ruby_frame, ruby_function
from agentctx.repo.logs.found import Found, RawFrame
from agentctx.repo.logs.section import Section

MAX_MESSAGE = 25  # lines between an error and its first frame
MAX_BLOCK = 2_000  # lines that one trace may have


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a language writes a trace.

    `head` opens a trace, its group `error` is the error line, `path`, `line` and `name` a frame of it where it has
    one. `chain` is a head that goes on with the same block. `inside` are other lines between the frames.
    """

    frame: Callable[[str], RawFrame | None]
    head: re.Pattern[str]
    chain: re.Pattern[str]
    inside: re.Pattern[str]
    bare: bool = True  # whether frames without a head are a trace


class StackReader:
    """Reads the traces of one dialect; an error without frames is left to others."""

    wakes: ClassVar[tuple[str, ...]] = ()
    dialect: ClassVar[Dialect]

    def __init__(self) -> None:
        self._found = Found()
        self._section: Section | None = None
        self._frames: list[RawFrame] = []  # of the trace that is read, innermost first
        self._errors: list[tuple[int, str]] = []
        self._waiting = 0  # lines since a head without a frame
        self._any = False  # whether the block has a frame

    @property
    def busy(self) -> bool:
        return self._section is not None

    def feed(self, at: int, line: str) -> None:
        dialect = self.dialect
        if self._section is not None and (chain := dialect.chain.match(line)):
            self._chain(at, line, chain, self._section)
        elif head := dialect.head.match(line):
            self._close(at)
            self._section = Section(at)
            self._head(at, line, head, self._section)
        elif frame := dialect.frame(line):
            self._frame(at, line, frame)
        elif self._section is not None:
            self._other(at, line, self._section)

    def finish(self) -> Found:
        self._close(None)
        return self._found

    def _head(self, at: int, line: str, head: re.Match[str], section: Section) -> None:
        groups = head.groupdict()
        if groups.get("error"):
            self._errors.append((at, head["error"]))
        if groups.get("path"):
            self._frames.append(RawFrame(head["path"], int(head["line"]), self._function(groups.get("name"))))
        section.add(at, line)
        self._waiting = 0

    def _function(self, name: str | None) -> str | None:
        return ruby_function(name or "")

    def _chain(self, at: int, line: str, chain: re.Match[str], section: Section) -> None:
        self._end_trace(section)
        self._head(at, line, chain, section)

    def _frame(self, at: int, line: str, frame: RawFrame) -> None:
        if self._section is None:
            if not self.dialect.bare or not frame.line:
                return
            self._section = Section(at)
        if at - self._section.at > MAX_BLOCK:
            return self._close(at)
        self._section.add(at, line)
        if len(self._frames) < MAX_BLOCK:
            self._frames.append(frame)
        self._waiting, self._any = 0, True

    def _other(self, at: int, line: str, section: Section) -> None:
        self._waiting += 1
        if self.dialect.inside.match(line) or (not self._any and self._waiting <= MAX_MESSAGE):
            section.add(at, line)
        else:
            self._close(at)

    def _end_trace(self, section: Section) -> None:
        frames, self._frames = self._frames, []
        if len(frames) > 1 and (frames[0].path, frames[0].line) == (frames[1].path, frames[1].line):
            del frames[0]  # the head's place is the first frame's
        section.trace(self._found, section.at, self._functions(frames))

    def _functions(self, frames: list[RawFrame]) -> list[RawFrame]:
        """The frames with the functions that their lines stand in."""
        return frames

    def _close(self, at: int | None) -> None:
        section, self._section = self._section, None
        if section is None:
            return
        if self._any or self._placed():
            self._end_trace(section)
            for error in self._errors:
                self._found.add_error(*error)
            self._found.add_block(section.block(end=None if at is None or not self._any else at - 1))
        self._frames, self._errors, self._any = [], [], False

    def _placed(self) -> bool:
        """Whether a head alone says enough."""
        return False


_NAMED = r"(?:[\w$]+\.)*[A-Z][\w$]*"
_NEVER = re.compile(r"(?!)")


class JvmStack(StackReader):
    """`java.lang.X: message`, `at a.B.c(B.java:1)`, `... 3 more`, `Caused by:`, `Suppressed:`."""

    wakes: ClassVar[tuple[str, ...]] = ("\tat ", " at ", "Exception", "Error", "Failure", "Throwable")
    dialect = Dialect(
        jvm_frame,
        re.compile(
            r"^[\s|]*(?:\[(?:ERROR|INFO|error)\] )?(?:Exception in thread \".*?\" |=> )?"
            r"(?P<error>(?:[\w$]+\.)+[A-Z][\w$]*(?:Exception|Error|Failure|Throwable|Failed\w*|Exit)(?:: .*)?)$"
            rf"|^Exception in thread \".*?\" (?P<error2>{_NAMED}(?:: .*)?)$"
        ),
        re.compile(rf"^[\s|]*(?:\[\w+\] )?(?:Caused by|Suppressed|Wrapped by): (?P<error>{_NAMED}(?::.*)?)$"),
        re.compile(
            r"^[\s|]*(?:\[\w+\]\s+)?"
            r"(?:\.\.\. \d+ (?:more|trimmed|common frames omitted)|\[CIRCULAR REFERENCE:.*|\[\.\.\.\])"
        ),
    )

    def _head(self, at: int, line: str, head: re.Match[str], section: Section) -> None:
        super()._head(at, line, head, section)
        if head.groupdict().get("error2"):
            self._errors.append((at, head["error2"]))


class DotnetStack(StackReader):
    """`Unhandled exception. System.X: message`, ` ---> System.Y: message`, `   at A.B.C() in x.cs:line 1`."""

    wakes: ClassVar[tuple[str, ...]] = ("   at ", "Exception: ", " ---> ")
    dialect = Dialect(
        dotnet_frame,
        re.compile(r"^\s*(?:Unhandled [Ee]xception[.:] )?(?P<error>(?:\w+\.)+\w*(?:Exception|Error): .*)$"),
        re.compile(rf"^ +---> (?:\(Inner Exception #\d+\) )?(?P<error>{_NAMED}: .*)$"),
        re.compile(r"^\s*--- End of (?:inner exception stack trace|stack trace from previous location).* ---$"),
    )


class RubyTrace(StackReader):
    """`a.rb:1:in 'm': message (Error)`, then `from b.rb:2:in 'n'`; a syntax error has only the first line."""

    wakes: ClassVar[tuple[str, ...]] = (".rb:", "Rakefile:", ".rake:")
    dialect = Dialect(
        lambda line: ruby_frame(line) if line.lstrip().startswith("from ") else None,
        re.compile(
            r"^(?P<path>[^\s:'\"(]+\.(?:rb|rake|ru)):(?P<line>\d+):in [`'](?P<name>[^']+)': "
            r"(?P<error>.* \([A-Z][\w:]*\)|[^()]*)$"
            r"|^(?P<bad>(?:ruby: )?[^\s:'\"(]+\.(?:rb|rake|ru)):(?P<at>\d+): (?P<syntax>syntax errors?(?: found)?\b.*)$"
        ),
        _NEVER,
        re.compile(r"^$|^ {2,}|^\t ?\.\.\. \d+ levels|^\s*\d* ?[|>]"),
    )

    def _head(self, at: int, line: str, head: re.Match[str], section: Section) -> None:
        super()._head(at, line, head, section)
        self._alone = bool(head["syntax"])
        if head["syntax"]:
            self._errors.append((at, head["syntax"]))
            self._frames.append(RawFrame(head["bad"].removeprefix("ruby: "), int(head["at"])))

    def _placed(self) -> bool:
        return bool(self._errors and self._frames)


class PhpTrace(StackReader):
    """`PHP Fatal error:  Uncaught X: message in a.php:1`, `#0 b.php(2): f()`; warnings and notices don't count."""

    wakes: ClassVar[tuple[str, ...]] = (" error: ", "#0 ", "Stack trace:", "Next ", "[object] (")
    dialect = Dialect(
        php_frame,
        re.compile(
            r"^.*?(?:PHP )?(?:Fatal|Parse|Recoverable fatal|Compile) error: +(?P<error>.+?)"
            r" in (?P<path>\S.*?\.(?:php|phtml|inc))(?::| on line )(?P<line>\d+)$"
        ),
        re.compile(r"^(?:PHP )?Next (?P<error>[\w\\]+: .*?) in (?P<path>\S.*?):(?P<line>\d+)$"),
        re.compile(r"^$|^(?:PHP )?Stack trace:$|^  thrown in "),
    )

    def _functions(self, frames: list[RawFrame]) -> list[RawFrame]:
        """A line names what it called: the next one's is what it stands in."""
        around = [frame.function for frame in frames[1:]]
        return [replace(frame, function=name) for frame, name in zip(frames, (*around, None), strict=True)]

    def _placed(self) -> bool:
        return bool(self._errors)


class NativeStack(StackReader):
    """Sanitizers' reports with the stacks in them, debuggers' backtraces."""

    wakes: ClassVar[tuple[str, ...]] = ("Sanitizer", "#0 ", "#1 ", "runtime error: ", " received signal ")
    dialect = Dialect(
        native_frame,
        re.compile(
            r"^(?:==\d+== ?)?(?:ERROR|WARNING): (?P<error>\w+Sanitizer: .*)$"
            r"|^(?P<path>(?:[A-Za-z]:)?[^\s:]+):(?P<line>\d+)(?::\d+)?: (?P<undefined>runtime error: .*)$"
            r"|^(?:Program|Thread \d.*) received signal (?P<signal>\w+), .*$"
        ),
        re.compile(
            r"^\s*(?:(?:Direct|Indirect) leak of|(?:previously )?allocated by|freed by"
            r"|(?:Previous )?(?:[Rr]ead|[Ww]rite|READ|WRITE) of size|Thread T\d+).*$"
        ),
        re.compile(r"^$|^0x[0-9a-f]+ is located|^\w+ of size |^SUMMARY: |^\s*\d+\t|^\S.*\) at \S+:\d+$"),
    )

    def _head(self, at: int, line: str, head: re.Match[str], section: Section) -> None:
        super()._head(at, line, head, section)
        groups = head.groupdict()
        for name in ("undefined", "signal"):
            if groups.get(name):
                self._errors.append((at, f"signal {groups[name]}" if name == "signal" else groups[name]))

    def _placed(self) -> bool:
        """A runtime error without a stack has a place; the report's other heads need one."""
        return bool(self._frames and self._errors)

    def _function(self, name: str | None) -> str | None:
        return name
