"""vitest: ` FAIL  path > describe > test`, a message, `❯ function path:line:col` and the source. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.found import Found, RawTest
from agentctx.repo.logs.javascript import SCRIPT, untimed
from agentctx.repo.logs.reading import Reading

_FAIL = re.compile(rf"^ ?FAIL  (?:\|[^|]*\| |\[[^\]]*\] )?(\S.*?\.(?:{SCRIPT}))(?: > (.+)| \[ .* \])?$")
_TREE = re.compile(rf"^ [\u00d7x\u2717\u276f\u2713] (?:\|[^|]*\| )?(\S.*?\.(?:{SCRIPT})) > (.+)$")
_RULE = re.compile(r"^[\u23af\u2500]{4,}")
_DIFF = re.compile(r"^(?:[-+] |[A-Z]\w*(?:Error|Exception): |Error: |Caused by: |Snapshot )")
MAX_IDLE = 400  # lines of one failure


class VitestFormat:
    """Failures between rules; several tests may share one."""

    wakes: ClassVar[tuple[str, ...]] = ("FAIL  ", " \u00d7 ", "\u2717 ")

    def __init__(self) -> None:
        self._found = Found()
        self._readings: list[Reading] = []  # of the failure that is read; the last one takes the lines
        self._listed: list[RawTest] = []

    @property
    def busy(self) -> bool:
        return bool(self._readings)

    def feed(self, at: int, line: str) -> None:
        if fail := _FAIL.match(line):
            if self._readings and self._readings[-1].lines:
                self._close(at)
            names = tuple(fail[2].split(" > ")) if fail[2] else ()
            self._readings.append(Reading(at, names, fail[1]))
        elif (tree := _TREE.match(line)) and line[1] in "\u00d7x\u2717":
            self._listed.append(RawTest(at, tree[1], tuple(untimed(tree[2]).split(" > "))))
        elif self._readings and (_RULE.match(line) or at - self._readings[-1].at > MAX_IDLE):
            self._close(at)
        elif self._readings:
            reading = self._readings[-1]
            if line.strip() and (not any(reading.lines) or _DIFF.match(line)):
                self._found.add_error(at, line)
            reading.add(line)

    def finish(self) -> Found:
        self._close(self._readings[-1].at + len(self._readings[-1].lines) if self._readings else 0)
        for test in self._listed:
            self._found.add_test(test)
        return self._found

    def _close(self, at: int) -> None:
        readings, self._readings = self._readings, []
        for reading in readings:
            reading.close(self._found, at if reading is readings[-1] else reading.at + 1)
