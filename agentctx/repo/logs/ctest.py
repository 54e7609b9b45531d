"""ctest: the failed tests with their output, and the list at the end. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.found import Found, RawTest
from agentctx.repo.logs.gtest import gtest_test
from agentctx.repo.logs.section import Section

_RESULT = re.compile(
    r"^ *\d+/\d+ Test +#\d+: (?P<name>\S.*?) ?\.*\s*(?P<verdict>Passed|(?:[\w ]*)\*\*\*.*?|Not Run.*?|Disabled) .*$"
)
_NEXT = re.compile(r"^ {4}Start +\d+: |^\d+% tests passed|^Total Test time|^The following tests FAILED:")
_LISTED = re.compile(r"^\t *\d+ - (?P<name>\S.*?) \((?P<why>[^()]*)\)(?:\s.*)?$")
MAX_LINES = 3_000


class CtestFormat:
    """A test that failed is followed by its output."""

    wakes: ClassVar[tuple[str, ...]] = ("***", "The following tests FAILED:")

    def __init__(self) -> None:
        self._found = Found()
        self._section: Section | None = None
        self._name = ""
        self._known: set[str] = set()
        self._list = False

    @property
    def busy(self) -> bool:
        return self._section is not None or self._list

    def feed(self, at: int, line: str) -> None:
        if result := _RESULT.match(line):
            self._close()
            if result["verdict"] not in ("Passed", "Disabled") and not result["verdict"].startswith(
                "Not Run (Disabled"
            ):
                self._section, self._name = Section(at), result["name"]
                self._section.add(at, line)
        elif line.startswith("The following tests FAILED:"):
            self._close()
            self._list = True
        elif self._list:
            self._listed(at, line)
        elif self._section is not None:
            if _NEXT.match(line) or at - self._section.at > MAX_LINES:
                self._close()
            else:
                self._section.add(at, line)

    def finish(self) -> Found:
        self._close()
        return self._found

    def _listed(self, at: int, line: str) -> None:
        listed = _LISTED.match(line)
        self._list = listed is not None
        if listed and listed["why"] not in ("Disabled", "Skipped") and listed["name"] not in self._known:
            self._found.add_test(_test(at, listed["name"]))

    def _close(self) -> None:
        section, self._section = self._section, None
        if section is None:
            return
        self._known.add(self._name)
        test = _test(section.at, self._name)
        self._found.add_test(test)
        self._found.add_block(section.block(test, "FAILED"))


def _test(at: int, name: str) -> RawTest:
    """The name of a whole program, or of one GoogleTest that CMake discovered."""
    return gtest_test(at, name) if re.fullmatch(r"[\w/]+\.[\w/]+", name) else RawTest(at, "", (name,))
