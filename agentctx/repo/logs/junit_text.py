"""Gradle's test task, JUnit's own text runners, ScalaTest and MUnit. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.callstacks import jvm_frame
from agentctx.repo.logs.found import Found, RawFrame, RawTest
from agentctx.repo.logs.jvm_names import jvm_test
from agentctx.repo.logs.section import Section

_GRADLE = re.compile(r"^(?:Gradle Test \S+ \d+ > )?(?P<class>(?:[\w$]+\.)*[A-Z][\w$]*) > (?P<titles>\S.*) FAILED$")
_AT = re.compile(r"^\s+(?P<error>(?:Caused by: )?(?:[\w$]+\.)*[A-Z][\w$]*) at (?P<file>[\w$]+\.\w+):(?P<line>\d+)$")
_NUMBERED = re.compile(r"^\d+\) (?P<method>\S.*?)\((?P<class>(?:[\w$]+\.)*[\w$]+)\)$")
_SOURCE = re.compile(
    r"^\s+(?:MethodSource|ClassSource) \[className = '(?P<class>[^']+)'(?:, methodName = '(?P<method>[^']+)')?.*\]$"
)
_ONE_OF = re.compile(r"^\[.*|^[\w.$]+\(.*\)\[(?P<n>\d+)\]$")
_CASE = re.compile(r":\[(?P<n>\d+)\] (?P<text>.*)$")
_ERROR = re.compile(r"^\s+=> (?P<error>.+)$")
_SCALATEST = re.compile(r"^(?:\[info\] )?\s*- (?P<name>\S.*) \*\*\* FAILED \*\*\*(?: \(.*\))?$")
_MUNIT = re.compile(r"^(?:\[error\] )?==> X (?P<class>(?:\w+\.)*\w+)\.(?P<name>.+?) +[\d.]+s (?P<error>\S.*)$")
_SCALA_PLACE = re.compile(r"\((?P<file>[\w$]+\.scala):(?P<line>\d+)\)$|: (?P<path>\S+\.scala):(?P<at>\d+)\b")
MAX_LINES = 500


class _Sections:
    """A failure is a head, then the lines that belong to it."""

    wakes: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self._found = Found()
        self._section: Section | None = None
        self._named: tuple[str, str, str | None] = ("", "", None)

    @property
    def busy(self) -> bool:
        return self._section is not None

    def head(self, at: int, line: str) -> tuple[str, str, str | None] | None:
        """Class, method and parameter of the failure that a line opens."""
        raise NotImplementedError

    def ends(self, line: str) -> bool:
        """Whether the failure ended before a line."""
        raise NotImplementedError

    def feed(self, at: int, line: str) -> None:
        if (head := self.head(at, line)) is not None:
            self._close()
            self._section, self._named = Section(at), head
        elif self._section is not None:
            if self.ends(line) or at - self._section.at > MAX_LINES:
                return self._close()
            self.inside(at, line, self._section)
            self._section.add(at, line)

    def inside(self, at: int, line: str, section: Section) -> None:
        """Look at a line of the failure; its frames are collected innermost first."""
        if (frame := jvm_frame(line)) and frame.line:
            section.frames.append(frame)

    def test(self, section: Section) -> RawTest:
        owner, method, param = self._named
        return jvm_test(section.at, owner, method, section.frames, param)

    def finish(self) -> Found:
        self._close()
        return self._found

    def _close(self) -> None:
        section, self._section = self._section, None
        if section is None:
            return
        test = self.test(section)
        section.frames = section.frames[::-1][:200]
        self._found.add_test(test)
        self._found.add_block(section.block(test, "FAILED"))


class GradleFormat(_Sections):
    """`Class > method FAILED`, then an indented exception: its place only, or the whole stack."""

    wakes: ClassVar[tuple[str, ...]] = (" FAILED",)

    def head(self, at: int, line: str) -> tuple[str, str, str | None] | None:
        found = _GRADLE.match(line)
        if found is None:
            return None
        titles = found["titles"].split(" > ")
        case = _ONE_OF.match(titles[-1]) if len(titles) > 1 else None
        param = (case["n"] or titles[-1]) if case else None
        if case:
            del titles[-1]
        return "$".join((found["class"], *titles[:-1])), titles[-1], param

    def ends(self, line: str) -> bool:
        return bool(line.strip()) and not line.startswith((" ", "\t"))

    def inside(self, at: int, line: str, section: Section) -> None:
        if place := _AT.match(line):
            package = self._named[0].rpartition(".")[0].replace(".", "/")
            path = f"{package}/{place['file']}" if package else place["file"]
            frame = RawFrame(path, int(place["line"]))
            section.frames.insert(0, frame)
            self._found.add_trace(at, [frame])
            self._found.add_error(at, place["error"])
        else:
            super().inside(at, line, section)


class JUnitRunnerFormat(_Sections):
    """JUnit 4's text runner: `1) method(class)`, then the stack."""

    wakes: ClassVar[tuple[str, ...]] = (") ",)

    def head(self, at: int, line: str) -> tuple[str, str, str | None] | None:
        found = _NUMBERED.match(line) if line[:1].isdigit() else None
        return (found["class"], found["method"], None) if found and "." in found["class"] + "." else None

    def ends(self, line: str) -> bool:
        return not line.strip()

    def _close(self) -> None:
        """Without a stack it is some other numbered list."""
        if self._section is not None and not self._section.frames:
            self._section = None
        super()._close()


class JUnitConsoleFormat(_Sections):
    """The console launcher of JUnit 5: `MethodSource [className = ..., methodName = ...]`, then `=> error`."""

    wakes: ClassVar[tuple[str, ...]] = ("Source [className = '",)
    back: ClassVar[int] = 1

    def __init__(self) -> None:
        super().__init__()
        self._title = ""

    def head(self, at: int, line: str) -> tuple[str, str, str | None] | None:
        found = _SOURCE.match(line)
        title, self._title = self._title, line
        if found is None:
            return None
        case = _CASE.search(title)
        return found["class"], found["method"] or "", f"{case['n']}: {case['text']}" if case else None

    def ends(self, line: str) -> bool:
        return not line.startswith("    ")

    def inside(self, at: int, line: str, section: Section) -> None:
        if error := _ERROR.match(line):
            self._found.add_error(at, error["error"])
        super().inside(at, line, section)


class ScalaTestFormat(_Sections):
    """ScalaTest's `- name *** FAILED ***` and MUnit's `==> X suite.name`; a message ends with its place."""

    wakes: ClassVar[tuple[str, ...]] = ("*** FAILED ***", "==> X ")

    def head(self, at: int, line: str) -> tuple[str, str, str | None] | None:
        if found := _MUNIT.match(line):
            self._found.add_error(at, found["error"])
            return found["class"], found["name"], found["error"]
        found = _SCALATEST.match(line)
        return ("", found["name"], None) if found else None

    def ends(self, line: str) -> bool:
        text = line.removeprefix("[info] ").removeprefix("[error] ")
        return not text.startswith("  ") or text.lstrip().startswith("- ")

    def inside(self, at: int, line: str, section: Section) -> None:
        if jvm_frame(line):
            return super().inside(at, line, section)
        if place := _SCALA_PLACE.search(line):
            frame = RawFrame(place["file"] or place["path"], int(place["line"] or place["at"]))
            section.frames.append(frame)
            self._found.add_trace(at, [frame])
            self._found.add_error(at, line.removeprefix("[info] "))

    def test(self, section: Section) -> RawTest:
        if place := _SCALA_PLACE.search(self._named[2] or ""):
            section.frames.append(RawFrame(place["file"] or place["path"], int(place["line"] or place["at"])))
            self._found.add_trace(section.at, section.frames[-1:])
        paths = [frame.path for frame in section.frames]
        own = [path for path in paths if path.endswith(("Spec.scala", "Suite.scala", "Test.scala", "Tests.scala"))]
        return RawTest(section.at, next(iter(own[::-1] or paths), ""), tuple(p for p in self._named[:2] if p))
