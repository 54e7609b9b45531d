"""TAP of any producer: node --test, mocha, ava, tape, bats, prove. Sub-tests by indentation, YAML by its keys. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.found import Found, RawFrame
from agentctx.repo.logs.javascript import SCRIPT, frame_of, stack_line, untimed
from agentctx.repo.logs.reading import Reading

_RESULT = re.compile(r"^( *)(not )?ok \d+(?: -)? ?(.*)$")
_SUBTEST = re.compile(r"^( *)# Subtest: (.+)$")
_COMMENT = re.compile(r"^# (?!(?:tests|pass|fail|suites|cancelled|skipped|todo|duration_ms) )(\S.*)$")
_DIRECTIVE = re.compile(r"(?<!\\) # (?:TODO|SKIP)\b", re.I)
_LOCATION = re.compile(r"^ *(?:location: '?|at: '?(?:.*\()?)((?:file://)?[^'()\n]+?):(\d+):\d+\)?'?$")
_KEY = re.compile(r"^ *(error|message): (?![|>])['\"]?([^'\"].*?)['\",]*$")
_PERL = re.compile(r"^#\s+(?:at (\S+) line (\d+)|\(?in test file (\S+), line (\d+)\)|in file (\S+), line (\d+))")
_ERROR = re.compile(r"^ *(?:[A-Z]\w*(?:Error|Exception)\b.*:.*|not ok .*|[-+] \S.*|\S.* (?:!=|==)=? .*)$")
_NOISE = re.compile(r"^ *(?:(?:duration_ms|failureType|code|name|type|severity|assertion|operator|location): |---$|$)")
_SUITE = ("failureType: 'subtestsFailed'", "type: 'suite'")  # of node: only what runs in it failed
_HOOK = re.compile(r'^(.*?) ?"(?:before|after) (?:each|all)" hook.*? (?:for|in) "(.*)"$')
_FILE = re.compile(rf"\.(?:{SCRIPT})$")


class TapFormat:
    """`_open` are the sub-tests around, (indent, name); a result whose sub-tests failed is no failure of its own."""

    wakes: ClassVar[tuple[str, ...]] = ("not ok ", "# Subtest: ", "\n# ")

    def __init__(self) -> None:
        self._found = Found()
        self._open: list[tuple[int, str]] = []
        self._failed_in = -1  # deepest indent of a failure since the last result above it
        self._reading: Reading | None = None
        self._indent = 0
        self._comment = ""
        self._thrown: RawFrame | None = None  # where the error was thrown, of producers that give no stack

    @property
    def busy(self) -> bool:
        return self._reading is not None

    def feed(self, at: int, line: str) -> None:
        if sub := _SUBTEST.match(line):
            self._close(at)
            indent = len(sub[1])
            self._open = [*(entry for entry in self._open if entry[0] < indent), (indent, sub[2])]
        elif result := _RESULT.match(line):
            self._close(at)
            self._result(at, len(result[1]), bool(result[2]), result[3], line)
        elif self._reading is not None:
            self._inside(at, line, self._reading)
        elif comment := _COMMENT.match(line):
            self._comment = comment[1]

    def finish(self) -> Found:
        self._close(self._reading.at + len(self._reading.lines) if self._reading else 0)
        return self._found

    def _result(self, at: int, indent: int, failed: bool, title: str, line: str) -> None:
        above = [name for depth, name in self._open if depth < indent]
        self._open = [entry for entry in self._open if entry[0] < indent]
        is_suite, self._failed_in = failed and self._failed_in > indent, indent if failed else self._failed_in
        if not failed or is_suite or _DIRECTIVE.search(title):
            return
        title = _HOOK.sub(r"\1 \2", untimed(title)).strip()
        names = [*above, title] if title else above
        path = names.pop(0) if names and _FILE.search(names[0]) and "/" in names[0] else ""
        self._reading = Reading(at, tuple(names), path, [line.strip()])
        self._indent = indent

    def _inside(self, at: int, line: str, reading: Reading) -> None:
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if place := _PERL.match(line):
            path, number = next((place[i], place[i + 1]) for i in (1, 3, 5) if place[i])
            reading.path = reading.path or path
            self._found.add_trace(at, [RawFrame(path, int(number))])
        elif text and (indent <= self._indent) and not line.startswith("#"):
            return self._close(at)
        elif text == "...":
            return self._close(at + 1)
        self._detail(at, line, reading)

    def _detail(self, at: int, line: str, reading: Reading) -> None:
        """YAML's location is where node's test is defined; `operator` without it is tape's: its comment is the test."""
        if line.strip().startswith("location:") and (place := _LOCATION.match(line)):
            reading.path = reading.path or place[1]
        elif line.strip().startswith("operator:") and not reading.path:
            reading.names = (self._comment,) if self._comment else ()
        elif line.strip() in _SUITE:
            self._reading = None
            return
        elif _NOISE.match(line):
            pass
        elif (key := _KEY.match(line)) or (_ERROR.match(line) and stack_line(line) is None and frame_of(line) is None):
            self._found.add_error(at, key[2] if key else line)
        if line.strip().startswith("at:") and (place := _LOCATION.match(line)):
            self._thrown = RawFrame(place[1], int(place[2]))
        elif not _NOISE.match(line):
            reading.add(line)

    def _close(self, at: int) -> None:
        reading, self._reading = self._reading, None
        if reading is not None and self._thrown is not None and not reading.frames:
            reading.frames = [self._thrown]
        self._thrown = None
        if reading is not None and (reading.names or reading.path):
            reading.close(self._found, at)
