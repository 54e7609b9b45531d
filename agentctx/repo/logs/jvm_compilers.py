"""What javac, kotlinc, scalac, Maven's and sbt's compilers report. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.compilers import Reported

_PATTERNS = (
    # javac, scalac, kotlinc alone, Gradle's and Ant's prefixes before them
    re.compile(
        r"^(?:\[\w+\] +)?(?:> Task )?(?::[\w:-]*compile\w*)?"
        r"(?P<path>(?:[A-Za-z]:)?[^\s:\[][^:\n]*\.(?:java|scala|kts?)):(?P<line>\d+):(?:\d+:)? "
        r"error: (?P<message>\S.*)$"
    ),
    # Maven
    re.compile(
        r"^\[ERROR\] (?P<path>(?:[A-Za-z]:)?[^\s:][^:\n]*\.(?:java|scala|kts?|groovy)):"
        r"\s?[\[(](?P<line>\d+), ?\d+[\])] "
        r"(?:error: |e: )?(?P<message>\S.*)$"
    ),
    # Kotlin under Gradle, now and before
    re.compile(r"^e: (?:file://)?(?P<path>(?:[A-Za-z]:)?[^\s:][^:\n]*\.kts?):(?P<line>\d+):\d+:? (?P<message>\S.*)$"),
    re.compile(r"^e: (?P<path>(?:[A-Za-z]:)?[^\s:][^:\n]*\.kts?): \((?P<line>\d+), \d+\): (?P<message>\S.*)$"),
    # sbt; Scala 3
    re.compile(
        r"^\[error\] (?P<path>(?:[A-Za-z]:)?[^\s:][^:\n]*\.(?:scala|java|sbt)):(?P<line>\d+):\d+: (?P<message>\S.*)$"
    ),
    re.compile(
        r"^(?:\[error\] )?-- (?P<message>(?:\[E\d+\] )?[\w ]*Error): (?P<path>(?:[A-Za-z]:)?[^\s:][^:\n]*\.scala):"
        r"(?P<line>\d+):\d+ -*$"
    ),
)
_DETAIL = re.compile(
    r"^\s*(?:\[\w+\] )?\s*(?:symbol|location|found|required|reason)\s*: |^\s*(?:\[error\] )?\s*\|\s+\w"
)
_OTHER = re.compile(
    r"^\[(?:INFO|WARNING|ERROR|info|warn|success)\]|: warning: "
    r"|^(?:\[error\] )?(?:\d+|one|two|three|four|five) (?:errors?|warnings?)"
    r"|^w: |^> |^:|^FAILURE"
)


class JvmCompilerFormat(Reported):
    """After its caret an error goes on with indented lines only."""

    wakes: ClassVar[tuple[str, ...]] = (".java:", ".kt:", ".kts:", ".scala:", ".groovy:", ".sbt:")

    def __init__(self) -> None:
        super().__init__()
        self._caret = False

    def match(self, line: str) -> re.Match[str] | None:
        found = next((m for pattern in _PATTERNS if (m := pattern.match(line))), None)
        if found:
            self._caret = line.startswith(("[ERROR]", "e: "))
        return found

    def goes_on(self, line: str) -> bool:
        if not line.strip() or _OTHER.search(line):
            return line.startswith("[ERROR]   ")
        if line.removeprefix("[error] ").strip(" ~^") == "" and "^" in line:
            self._caret = True
            return True
        return not self._caret or line.startswith(("  ", "[error]  ", "[error]   "))

    def more_error(self, line: str) -> bool:
        return _DETAIL.match(line) is not None and "^" not in line
