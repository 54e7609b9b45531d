"""PHPUnit: its text, --testdox, and TeamCity's messages of any tool. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.found import Found, RawFrame, RawTest
from agentctx.repo.logs.junit_names import Case, case_frames, case_test
from agentctx.repo.logs.section import Section

_LIST = re.compile(r"^There (?:was|were) \d+ (?P<kind>errors?|failures?|.*):$")
_ENTRY = re.compile(
    r"^\d+\) (?P<class>[A-Za-z_\\][\w\\]*)::(?P<name>\w+)(?: with data set (?P<set>\"(?:[^\"]|\"(?! \())*\"|#\d+).*)?$"
)
_END = re.compile(r"^(?:--|FAILURES!|ERRORS!|WARNINGS!|OK\b.*|Tests: \d+, .*)$")
_PLACE = re.compile(
    r"^(?P<path>(?:[A-Za-z]:[\\/]|phar:|/|\.{0,2}/|vfs:)?\S[^:\n]*\.(?:php|phtml|phpt|inc)):(?P<line>\d+)$"
)
_DOX_SUITE = re.compile(r"^(?P<name>[A-Z][\w ]*)(?: \((?P<class>[\w\\]+)\))?$")
_DOX = re.compile(r"^ (?P<mark>[✘✔↩∅☢⚠]) (?P<title>\S.*)$")
_DOX_LINE = re.compile(r"^   [│├┐┊┴╵╷] ?(?P<text>.*)$")
_SET = re.compile(r" with data set (?P<set>.*)$")
MAX_ERRORS = 6
MAX_LINES = 500


class PhpunitFormat:
    """Entries of `There were N failures:`; risky, incomplete and skipped tests don't count."""

    wakes: ClassVar[tuple[str, ...]] = ("There was ", "There were ", " ✘ ")

    def __init__(self) -> None:
        self._found = Found()
        self._listing, self._last = False, 0
        self._section: Section | None = None
        self._names: tuple[str, ...] = ()
        self._param: str | None = None
        self._dox = ""  # the title of testdox
        self._frames: list[RawFrame] = []  # of the trace that is read, innermost first
        self._all: list[RawFrame] = []  # in written order
        self._n_errors = 0

    @property
    def busy(self) -> bool:
        return self._listing or self._section is not None

    def feed(self, at: int, line: str) -> None:
        if listed := _LIST.match(line):
            self._close()
            self._listing, self._last = listed["kind"].startswith(("error", "failure")), at
        elif dox := _DOX.match(line):
            self._close()
            if dox["mark"] == "✘":
                self._open(at, (), None, dox["title"])
        elif self._dox:
            self._in_dox(at, line)
        elif self._listing and (entry := _ENTRY.match(line)):
            self._close()
            self._last = at
            self._open(at, (entry["class"].rpartition("\\")[2], entry["name"]), entry["set"], "")
        elif self._listing and _END.match(line):
            self._close()
            self._listing = line == "--" and self._listing
        elif self._section is not None:
            self._inside(at, line, self._section)
        elif at - self._last > MAX_LINES:
            self._listing = False

    def finish(self) -> Found:
        self._close()
        return self._found

    def _open(self, at: int, names: tuple[str, ...], param: str | None, dox: str) -> None:
        self._section, self._names, self._param, self._dox = Section(at), names, param, dox
        self._frames, self._all, self._n_errors = [], [], 0

    def _in_dox(self, at: int, line: str) -> None:
        text = _DOX_LINE.match(line)
        if text and self._section is not None:
            self._inside(at, text["text"], self._section)
        elif line.strip():
            self._close()

    def _inside(self, at: int, line: str, section: Section) -> None:
        if at - section.at > MAX_LINES:
            return self._close()
        if place := _PLACE.match(line):
            frame = RawFrame(place["path"], int(place["line"]))
            self._frames.append(frame)
            self._all.append(frame)
        elif line == "Caused by":
            section.trace(self._found, at, self._frames)
            self._frames, self._n_errors = [], 0
        elif not self._frames and line.strip() and self._n_errors < MAX_ERRORS and _tells(line):
            self._n_errors += 1
            self._found.add_error(at, line)
        section.add(at, line)

    def _close(self) -> None:
        section, self._section = self._section, None
        title, self._dox = self._dox, ""
        if section is None:
            return
        section.trace(self._found, section.at, self._frames)
        test = _dox_test(section.at, title, self._all) if title else self._test(section.at)
        self._found.add_test(test)
        self._found.add_block(section.block(test, "FAILED"))

    def _test(self, at: int) -> RawTest:
        own = (frame.path for frame in self._all if frame.path.endswith(f"{self._names[0]}.php"))
        return RawTest(at, next(own, self._all[-1].path if self._all else ""), self._names, self._param)


def _tells(line: str) -> bool:
    """Not the heads of a diff and what is equal in it."""
    return not line.startswith((" ", "--- Expected", "+++ Actual", "@@ "))


def _dox_test(at: int, title: str, frames: list[RawFrame]) -> RawTest:
    """`Prices with data set #0` is testPrices of the class whose file comes last."""
    found = _SET.search(title)
    words = (title[: found.start()] if found else title).split()
    path = frames[-1].path if frames else ""
    name = "test" + "".join(word[:1].upper() + word[1:] for word in words)
    owner = path.replace("\\", "/").rpartition("/")[2].partition(".")[0]
    return RawTest(at, path, (owner, name) if owner else (name,), found["set"] if found else None)


_MESSAGE = re.compile(r"^\s*##teamcity\[(?P<what>testStarted|testFailed|testFinished) (?P<attributes>.*)\]$")
_ATTRIBUTE = re.compile(r"(\w+)='((?:[^|']|\|.)*)'")
_ESCAPE = re.compile(r"\|(0x[0-9A-Fa-f]{4}|.)")
_HINT = re.compile(r"^\w+://(?P<path>.+?)::\\?(?P<class>[\w\\]+)(?:::.*)?$")
_NO_FAILURE = ("This test did not perform any assertions", "This test printed output", "Test code or tested code ")


class TeamcityFormat:
    """`##teamcity[testFailed name='...' message='...' details='...']`, which PHPUnit and many others write."""

    wakes: ClassVar[tuple[str, ...]] = ("##teamcity[test",)
    busy = False

    def __init__(self) -> None:
        self._found = Found()
        self._hints: dict[str, str] = {}  # of the tests that run

    def feed(self, at: int, line: str) -> None:
        message = _MESSAGE.match(line)
        if message is None:
            return
        values = {name: _unescaped(value) for name, value in _ATTRIBUTE.findall(message["attributes"])}
        name = values.get("name", "")
        if message["what"] == "testStarted" and len(self._hints) < 1_000:
            self._hints[name] = values.get("locationHint", "")
        elif message["what"] == "testFinished":
            self._hints.pop(name, None)
        elif message["what"] == "testFailed" and not values.get("message", "").startswith(_NO_FAILURE):
            self._failed(at, name, values)

    def finish(self) -> Found:
        return self._found

    def _failed(self, at: int, name: str, values: dict[str, str]) -> None:
        hint = _HINT.match(self._hints.get(name, ""))
        attributes = {"name": name, **({"file": hint["path"], "classname": hint["class"]} if hint else {})}
        said = values.get("message", "").split("\n")
        lines = [*said, *(line.strip() for line in values.get("details", "").split("\n"))]
        case = Case(at, attributes, (), tuple(lines))
        section = Section(at)
        for line in lines:
            section.add(at, line)
        for line in said[:MAX_ERRORS]:
            self._found.add_error(at, line)
        for frames in case_frames(case):
            self._found.add_trace(at, frames)
            section.frames += frames
        test = case_test(case)
        self._found.add_test(test)
        self._found.add_block(section.block(test, "FAILED"))


def _unescaped(text: str) -> str:
    def plain(found: re.Match[str]) -> str:
        escape = found[1]
        if escape.startswith("0x"):
            return chr(int(escape[2:], 16)) if not 0xD800 <= int(escape[2:], 16) <= 0xDFFF else " "
        return {"n": "\n", "r": "\r", "x": "\x85", "l": "\u2028", "p": "\u2029"}.get(escape, escape)

    return _ESCAPE.sub(plain, text)
