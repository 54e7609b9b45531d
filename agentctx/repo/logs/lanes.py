"""Output of several processes in one log, told apart by what stands before each line: each is read by itself. Pure.

docker compose (`web-1  | `), foreman, kubectl (`[pod/x] `), Jenkins' parallel stages and concurrently (`[name] `),
Turborepo (`pkg:task: `), pnpm (`packages/a test: `).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
MOST = 0.5  # of the lines between the first and the last one of a lane must be of one, else there are none
MIN_LINES = 8
MAX_LANES = 64
WINDOW = 1_000  # lines that are looked at together
SAMPLE = 250  # of them
REST = ""


@dataclass(frozen=True, slots=True)
class Lane:
    """Lines of one process: their indexes in the log, and their text without the prefix."""

    name: str
    numbers: Sequence[int]
    text: str


class Lanes:
    """Splits batch after batch, window by window; names that were lanes once stay lanes."""

    def __init__(self, depth: int = 2) -> None:
        self._depth = depth  # lanes in lanes: a monorepo's tasks in a container
        self._pattern: re.Pattern[str] | None = None
        self._names: set[str] = set()
        self._inner: dict[str, Lanes] = {}

    def split(self, numbers: Sequence[int], text: str) -> Iterator[Lane]:
        """The batch's lanes, each one's lines in order; `REST` has the lines without one. Nothing is lost.

        Args:
            numbers: The lines' indexes in the log, ascending.
        """
        lines = text.split("\n")
        start = 0  # of the windows without lanes that wait
        for at in range(0, len(lines), WINDOW):
            window = lines[at : at + WINDOW]
            pattern = self._pattern if self._goes_on(window) else _pattern(window)
            self._pattern = pattern
            if pattern is None:
                continue
            if start < at:
                yield Lane(REST, numbers[start:at], "\n".join(lines[start:at]))
            yield from self._split(numbers[at : at + WINDOW], window, pattern)
            start = at + WINDOW
        if start < len(lines):
            yield Lane(REST, numbers[start:], "\n".join(lines[start:]) if start else text)

    def _split(self, numbers: Sequence[int], lines: Sequence[str], pattern: re.Pattern[str]) -> Iterator[Lane]:
        found: dict[str, tuple[list[int], list[str]]] = {}
        for number, line in zip(numbers, lines, strict=True):
            name, rest = self._lane(line, pattern)
            own = found.setdefault(name, ([], []))
            own[0].append(number)
            own[1].append(rest)
        for name, (own_numbers, own_lines) in found.items():
            text = "\n".join(own_lines)
            if name == REST or self._depth < 2:
                yield Lane(name, own_numbers, text if name == REST else strip_prefixes(text))
            else:
                inner = self._inner.setdefault(name, Lanes(self._depth - 1))
                for lane in inner.split(own_numbers, strip_prefixes(text)):
                    yield Lane(f"{name}/{lane.name}", lane.numbers, lane.text)

    def _goes_on(self, window: Sequence[str]) -> bool:
        """Whether the window has a line of a lane that is known by the pattern of the window before."""
        pattern = self._pattern
        if pattern is None:
            return False
        return any((found := pattern.match(line)) and found[1] in self._names for line in window)

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


def _pattern(lines: Sequence[str]) -> re.Pattern[str] | None:
    """The prefix that most lines between its first and its last one have, of few names; None where there is none."""
    sample = [line for line in lines[:: max(1, len(lines) // SAMPLE)] if line.strip()]
    for pattern in _LANES:
        found = [pattern.match(line) for line in sample]
        hits = [i for i, match in enumerate(found) if match]
        if len(hits) < (2 if pattern in _CLEAR else MIN_LINES):
            continue
        names = {match[1] for match in found if match}
        few = len(hits) // (2 if pattern in _CLEAR else 3)
        if len(hits) > MOST * (hits[-1] - hits[0] + 1) and len(names) <= max(1, few):
            return pattern
    return None
