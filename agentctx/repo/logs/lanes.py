"""Output of several processes in one log, told apart by what stands before each line: each is read by itself. Pure.

docker compose (`web-1  | `), foreman, kubectl (`[pod/x] `), Jenkins' parallel stages and concurrently (`[name] `),
Turborepo (`pkg:task: `), pnpm (`packages/a test: `).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agentctx.repo.logs.prefixes import strip_prefixes

# What stands before the lines must be what most have, and few different ones: the first two are clear in a short log.
_LANES = (
    re.compile(r"^(?:\d\d:\d\d:\d\d )?([A-Za-z][\w.-]*-\d+) +\| ?(.*)$"),
    re.compile(r"^\[(pod/[^\]\s]+)\] ?(.*)$"),
    re.compile(r"^(?:\d\d:\d\d:\d\d )?([A-Za-z][\w.-]*) +\| ?(.*)$"),
    re.compile(
        r"^\[(?!(?i:info|warn|warning|error|debug|trace|fatal|command|gw\d+|\s*\d+%|\*|notice|pass|fail|ok)\])"
        r"([\w./@](?:[\w./@ -]{0,58}[\w./@-])?)\] ?(.*)$"  # not GoogleTest's [ RUN      ] and [----------]
    ),
    re.compile(r"^((?:@[\w.-]+/)?[\w.-]+[:#][a-z][\w:-]*): (.*)$"),
    re.compile(r"^((?:[\w.@-]+/)*[\w.@-]+ [a-z][\w:-]*)[:$] ?(.*)$"),
)
_CLEAR = _LANES[:2]
MOST = 0.5  # of the lines that aren't blank must have a lane, else there are none
MIN_LINES = 8
MAX_LANES = 64
SAMPLE = 300
REST = ""


@dataclass(frozen=True, slots=True)
class Lane:
    """Lines of one process: their indexes in the log, and their text without the prefix."""

    name: str
    numbers: range | list[int]
    text: str


class Lanes:
    """Splits batch after batch; what opens a lane in one batch is known in the next."""

    def __init__(self) -> None:
        self._pattern: re.Pattern[str] | None = None
        self._names: set[str] = set()

    def split(self, at: int, text: str) -> Iterator[Lane]:
        """The batch's lanes in order of their first line; `REST` has the lines without one. Nothing is lost."""
        lines = text.split("\n")
        self._pattern = _pattern(lines)
        if self._pattern is None:
            yield Lane(REST, range(at, at + len(lines)), text)
            return
        found: dict[str, tuple[list[int], list[str]]] = {}
        for number, line in enumerate(lines, at):
            name, rest = self._lane(line, self._pattern)
            numbers, own = found.setdefault(name, ([], []))
            numbers.append(number)
            own.append(rest)
        for name, (numbers, own) in found.items():
            yield Lane(name, numbers, strip_prefixes("\n".join(own)) if name != REST else "\n".join(own))

    def _lane(self, line: str, pattern: re.Pattern[str]) -> tuple[str, str]:
        match = pattern.match(line)
        if match is None:
            return REST, line
        name = match[1]
        if name not in self._names:
            if len(self._names) >= MAX_LANES:
                return REST, line
            self._names.add(name)
        return name, match[2]


def _pattern(lines: list[str]) -> re.Pattern[str] | None:
    """The prefix that most lines have, each of its lanes more than once; None where there is none."""
    sample = [line for line in lines[:: max(1, len(lines) // SAMPLE)] if line.strip()]
    for pattern in _LANES if len(sample) >= MIN_LINES else _CLEAR:
        names = [found[1] for line in sample if (found := pattern.match(line))]
        few = len(names) // (2 if pattern in _CLEAR else 3)
        if len(names) > MOST * len(sample) and len(set(names)) <= max(1, few):
            return pattern
    return None
