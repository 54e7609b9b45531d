"""unittest's text runner, and those that print like it (Django, nose2, testtools, Twisted's trial); doctest. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.found import Block, Found, RawFrame, RawTest
from agentctx.repo.logs.traceback import FRAME

_RULE = re.compile(r"^={30,}$")
_DASHES = re.compile(r"^-{30,}$")
_HEAD = re.compile(r"^(FAIL|ERROR|UNEXPECTED SUCCESS|\[FAIL\]|\[ERROR\]): (\S.*)$")
_NAMED = re.compile(r"^([\w.]+) \((?:.*?<)?([\w.]+)[^)]*\)(?: .*)?$")
_DOTTED = re.compile(r"^([\w.]+)(?: .*)?$")
_VERBOSE = re.compile(r"^\s*(\w+) \(([\w.]+)\)(?: .*)? \.\.\. (?:FAIL|ERROR)$")
_RAN = re.compile(r"^Ran \d+ tests? in ")
_HOOKS = ("setUpClass", "tearDownClass", "setUpModule", "tearDownModule")
MAX_LINES = 400
_EXAMPLE = "Failed example:"
_DOC_FRAME = re.compile(r'^File "([^"]+)", line (\d+|\?), in (\S+)$')
_STARS = re.compile(r"^\*{30,}$")


class UnittestFormat:
    """A failure is a rule, a head, a rule, text; the next rule ends it."""

    wakes: ClassVar[tuple[str, ...]] = ("\nFAIL: ", "\nERROR: ", "\nUNEXPECTED SUCCESS: ", " ... FAIL", " ... ERROR")
    back: ClassVar[int] = 1

    def __init__(self) -> None:
        self._found = Found()
        self._after_rule = False  # whether the line before was a rule
        self._head: tuple[int, str, str] | None = None
        self._lines: list[str] = []
        self._frames: list[RawFrame] = []
        self._verbose: list[RawTest] = []

    @property
    def busy(self) -> bool:
        return self._head is not None

    def feed(self, at: int, line: str) -> None:
        after_rule, self._after_rule = self._after_rule, _RULE.match(line) is not None
        if self._after_rule:
            self._close(at)
        elif after_rule and (head := _HEAD.match(line)):
            self._head = at, head[1], head[2]
        elif self._head is not None:
            self._inside(at, line)
        elif (verbose := _VERBOSE.match(line)) and verbose[1] not in _HOOKS:
            self._verbose.append(_test(at, verbose[1], verbose[2], ()))

    def finish(self) -> Found:
        self._close(self._head[0] + len(self._lines) if self._head else 0)
        known = {test.names for test in self._found.tests}
        for test in self._verbose:
            if test.names not in known:
                self._found.add_test(test)
        return self._found

    def _inside(self, at: int, line: str) -> None:
        if _RAN.match(line) or len(self._lines) >= MAX_LINES:
            return self._close(at)
        if frame := FRAME.match(line):
            self._frames.append(RawFrame(frame[1], int(frame[2]), frame[3]))
        if not _DASHES.match(line):
            self._lines.append(line)

    def _close(self, at: int) -> None:
        head, self._head = self._head, None
        if head is None:
            return
        start, label, subject = head
        test = _subject(start, subject, self._frames)
        if test is not None and test.path:
            self._found.add_test(test)
        lines = tuple(line for line in self._lines if line.strip())
        title = () if test is not None else (f"{label}: {subject}",)
        block = Block(start, max(start, at - 1), (*title, *lines), tuple(self._frames), test, label)
        self._found.add_block(block)
        self._lines, self._frames = [], []


def _subject(at: int, subject: str, frames: list[RawFrame]) -> RawTest | None:
    """The test that a head names: `name (module.Class.name) [message] (parameters)`, or `module.Class.name`."""
    named = _NAMED.match(subject)
    if named is not None:
        return _test(at, named[1], named[2], frames)
    dotted = _DOTTED.match(subject)
    if dotted is None or "." not in dotted[1]:
        return None
    owner, _, name = dotted[1].rpartition(".")
    return _test(at, name, owner, frames)


def _test(at: int, name: str, owner: str, frames: list[RawFrame] | tuple[RawFrame, ...]) -> RawTest:
    """`owner` is `module.Class`, since Python 3.11 `module.Class.name`; a module that can't be loaded has no names."""
    if "_FailedTest" in owner or "ModuleImportFailure" in owner:
        module = owner.partition("_FailedTest.")[2] or name
        return RawTest(at, _module_path(module, frames), ())
    owner = owner.removesuffix(f".{name}")
    parts = owner.split(".")
    first = next((i for i, part in enumerate(parts) if part[:1].isupper()), len(parts) - 1)
    first = max(first, 1) if len(parts) > 1 else 0
    names = tuple(parts[first:]) if name in _HOOKS else (*parts[first:], name)
    own = [frame.path for frame in frames if frame.function == name]
    return RawTest(at, own[0] if own else _module_path(".".join(parts[:first]), frames), names)


def _module_path(module: str, frames: list[RawFrame] | tuple[RawFrame, ...]) -> str:
    """The module's file: where a frame stands in it, as written there; else what its dots say."""
    tail = module.replace(".", "/") + ".py"
    for frame in frames:
        if f"/{frame.path}".replace("\\", "/").endswith(f"/{tail}"):
            return frame.path
    return tail if module else ""


class DoctestFormat:
    """An example, what was expected and what came, between rules of stars."""

    wakes: ClassVar[tuple[str, ...]] = (_EXAMPLE,)
    back: ClassVar[int] = 1

    def __init__(self) -> None:
        self._found = Found()
        self._file: tuple[int, re.Match[str]] | None = None
        self._lines: list[str] = []
        self.busy = False

    def feed(self, at: int, line: str) -> None:
        if line == _EXAMPLE and self._file is not None and not self.busy:
            self.busy = True
            self._lines.append(line)
        elif found := _DOC_FRAME.match(line):
            self._close(at)
            self._file, self._lines = (at, found), [line]
        elif self.busy and (_STARS.match(line) or len(self._lines) > MAX_LINES):
            self._close(at)
        elif self.busy:
            self._lines.append(line)
        else:
            self._file = None

    def finish(self) -> Found:
        self._close(self._file[0] + len(self._lines) if self._file else 0)
        return self._found

    def _close(self, at: int) -> None:
        if self.busy and self._file is not None:
            start, file = self._file
            frames = (RawFrame(file[1], int(file[2])),) if file[2] != "?" else ()
            test = RawTest(start, file[1], _item(file[3], file[1]))
            for line in _telling(self._lines[2:]):
                self._found.add_error(start, line)
            self._found.add_test(test)
            self._found.add_block(Block(start, max(start, at - 1), tuple(self._lines), frames, test, "FAILED doctest"))
        self._file, self.busy = None, False


def _telling(lines: list[str]) -> list[str]:
    """The example, what was expected and what came; of a traceback, which another format reads, nothing."""
    cut = next((i for i, line in enumerate(lines) if line == "Exception raised:"), len(lines))
    return [line for line in lines[:cut] if line.startswith(" ")]


def _item(name: str, path: str) -> tuple[str, ...]:
    """`package.module.Class.method` without the part that is the file."""
    stem = path.replace("\\", "/").rpartition("/")[2].removesuffix(".py")
    parts = name.split(".")
    cut = parts.index(stem) + 1 if stem in parts else 0
    return tuple(parts[cut:])
