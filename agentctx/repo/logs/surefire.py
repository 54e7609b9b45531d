"""Maven Surefire and Failsafe: failures with their stacks, the summary, tests that passed when run again. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.callstacks import jvm_frame
from agentctx.repo.logs.found import Found, RawFrame, RawTest
from agentctx.repo.logs.jvm_names import jvm_test
from agentctx.repo.logs.section import Section

_LEVEL = r"^(?:\[(?P<level>ERROR|WARNING|INFO)\] +)?"
_FAILED = re.compile(
    _LEVEL + r"(?:(?P<method>[^\s(][^()]*?(?:\(.*\))?(?:\[.*\])?)\((?P<class>[\w.$]+)\)|(?P<full>[\w$]+\.\S.*?))"
    r"(?: --)? +Time elapsed: [\d.,]+ ?s(?:ec)?\s+<<< (?:FAILURE|ERROR)!$"
)
_SUITE = re.compile(_LEVEL + r"Tests run: \d+, Failures: ")
_LIST = re.compile(_LEVEL + r"(?P<list>Failures|Errors|Failed tests|Tests in error|Flakes): *(?P<first>.*)$")
_ENTRY = re.compile(
    _LEVEL
    + r" *(?P<class>[A-Z][\w$]*)(?:>[\w$]+)?\.(?P<method>[\w$]+(?:\[.*?\]|\{.*?\}(?:\[\d+\])?)?)(?::(?P<line>\d+))?"
    r"(?P<calls>(?:->[\w$.]+(?::\d+)?)*)(?: (?P<message>.*)|)$"
)
_FLAKY = re.compile(_LEVEL + r" *(?P<class>(?:[\w$]+\.)+[A-Z][\w$]*)[.#](?P<method>\S.*)$")
_RUN = re.compile(_LEVEL + r" *Run \d+: ")
_CALL = re.compile(r"->(?:[\w$]+\.)?(?P<name>[\w$]+):(?P<line>\d+)")
MAX_LINES = 500


class SurefireFormat:
    """Sections `method(class) <<< FAILURE!`; the summary names those that have none."""

    wakes: ClassVar[tuple[str, ...]] = (
        "<<< FAILURE!",
        "<<< ERROR!",
        "Failures: ",
        "Errors: ",
        "Failed tests:",
        "Tests in error:",
        "Flakes: ",
    )

    def __init__(self) -> None:
        self._found = Found()
        self._section: Section | None = None
        self._named: tuple[str, str] = ("", "")  # class and method of the section
        self._list = ""
        self._listed_at = 0
        self._listed: list[tuple[RawTest, list[RawFrame], str]] = []  # of the summary
        self._sections: list[tuple[Section, RawTest]] = []
        self._flaky: set[tuple[str, str]] = set()

    @property
    def busy(self) -> bool:
        return self._section is not None or bool(self._list)

    def feed(self, at: int, line: str) -> None:
        if _SUITE.match(line):
            self._close()
            self._list = ""
        elif failed := _FAILED.match(line):
            self._close()
            self._section, self._list = Section(at), ""
            owner, method = failed["class"], failed["method"]
            self._named = (owner, method) if owner else _split(failed["full"])
        elif self._section is not None:
            self._inside(at, line, self._section)
        elif listed := _LIST.match(line):
            self._list, self._listed_at = listed["list"], at
            if listed["first"]:
                self._entry(at, listed["first"])
        elif self._list:
            self._entry(at, line)

    def finish(self) -> Found:
        self._close()
        for section, test in self._sections:
            if (test.names[0], _plain(test.names[-1])) not in self._flaky:
                self._found.add_test(test)
                self._found.add_block(section.block(test, "FAILED"))
        known = {(test.names[0], test.names[-1]) for _, test in self._sections}
        for test, frames, message in self._listed:
            if not known & {(test.names[0], test.names[-1]), (test.names[0], test.names[0])}:
                self._found.add_test(test)
                self._found.add_trace(test.at, frames)
                self._found.add_error(test.at, message)
        return self._found

    def _inside(self, at: int, line: str, section: Section) -> None:
        if not line.strip() or line.startswith(("[INFO]", "[ERROR]", "[WARNING]")) or at - section.at > MAX_LINES:
            return self._close()
        if (frame := jvm_frame(line)) and frame.line:
            section.frames.append(frame)
        section.add(at, line)

    def _close(self) -> None:
        section, self._section = self._section, None
        if section is None:
            return
        frames, section.frames = section.frames, section.frames[::-1][:200]
        if len(self._sections) < 3_000:
            self._sections.append((section, jvm_test(section.at, *self._named, frames)))

    def _entry(self, at: int, line: str) -> None:
        if self._list == "Flakes":
            if flaky := _FLAKY.match(line):
                self._flaky.add((flaky["class"].rpartition(".")[2].split("$")[0], _plain(flaky["method"])))
            elif not _RUN.match(line):
                self._list = ""
        elif entry := _ENTRY.match(line):
            self._summed(at, entry)
        elif at - self._listed_at > MAX_LINES or line.startswith(("[INFO]", "Tests run:", "[WARNING]")):
            self._list = ""

    def _summed(self, at: int, entry: re.Match[str]) -> None:
        """`CartTest.discount:27->lambda$discount$1:30 » Arithmetic / by zero`: lines of the test's class."""
        test = jvm_test(at, entry["class"], entry["method"])
        frames = []
        if entry["line"]:
            frames = [RawFrame(test.path, int(entry["line"]), test.names[-1])]
            frames += [RawFrame(test.path, int(call["line"])) for call in _CALL.finditer(entry["calls"])]
        if len(self._listed) < 3_000:
            self._listed.append((test, frames, (entry["message"] or "").removeprefix("» ")))


def _split(full: str) -> tuple[str, str]:
    """`com.x.CartTest.adds(int)[2]` -> class and method; a class alone failed before its tests."""
    head = re.split(r"[(\[{ ]", full, maxsplit=1)[0]
    owner, _, method = head.rpartition(".")
    if method[:1].isupper() and not owner.rpartition(".")[2][:1].isupper():
        return head, ""
    return owner, method + full[len(head) :]


def _plain(method: str) -> str:
    return re.split(r"[(\[{ ]", method, maxsplit=1)[0]
