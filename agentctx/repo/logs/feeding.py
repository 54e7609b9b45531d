"""Gives each format the lines that it must see, and no others, so that two dozen formats cost little. Pure.

A batch of lines is searched for each format's `wakes` as one text, at memory speed; only lines with a hit, and lines
while a format is `busy`, become calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache

from agentctx.repo.logs.found import Found, LogFormat, LooksBack, MakeFormat

MIN_GROUP = 3  # literals that make a probe worth while
DENSE = 8  # one line in so many has a literal: then lines are looked at one by one


class Feeder:
    """The formats of one log."""

    def __init__(self, formats: Sequence[MakeFormat]) -> None:
        self._formats = [make() for make in formats]
        self._groups = _groups(tuple(dict.fromkeys(wake for parser in self._formats for wake in parser.wakes)))

    def feed(self, numbers: Sequence[int], text: str) -> None:
        """Take whole lines, joined by line feeds, and their indexes in the log, ascending."""
        lines = text.split("\n")
        text += "\n"  # a literal may end with a line feed: the line's end
        hits = self._hits(text, lines)
        for parser in self._formats:
            wakes = [hits[wake] for wake in parser.wakes if hits[wake]]
            if not parser.wakes:
                for number, line in zip(numbers, lines, strict=True):
                    parser.feed(number, line)
            elif wakes or parser.busy:
                _feed(parser, numbers, lines, wakes)

    def _hits(self, text: str, lines: Sequence[str]) -> dict[str, list[int]]:
        """The numbers of the lines with each literal."""
        hits: dict[str, list[int]] = {}
        for probe, wakes in self._groups:
            there = probe in text
            for wake in wakes:
                hits[wake] = _lines_with(text, lines, wake) if there else []
        return hits

    def finish(self) -> list[Found]:
        """What each format found, in their order."""
        return [parser.finish() for parser in self._formats]


def _feed(parser: LogFormat, numbers: Sequence[int], lines: Sequence[str], wakes: Sequence[Sequence[int]]) -> None:
    """The lines with hits (and those before that the format wants); after each, all until it is no longer busy."""
    back = parser.back if isinstance(parser, LooksBack) else 0
    i = 0
    for hit in sorted(set().union(*wakes)):
        while parser.busy and i < hit:
            parser.feed(numbers[i], lines[i])
            i += 1
        i = max(i, hit - back)
        while i <= hit:
            parser.feed(numbers[i], lines[i])
            i += 1
    while parser.busy and i < len(lines):
        parser.feed(numbers[i], lines[i])
        i += 1


@cache
def _groups(literals: tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """(probe, literals that hold it): where two characters aren't in a text, many literals needn't be looked for.

    The pair that most of the remaining literals share is the next probe; what shares none is its own.
    """
    left = sorted(literals)
    groups: list[tuple[str, tuple[str, ...]]] = []
    while left:
        counts = Counter(pair for wake in left for pair in {wake[i : i + 2] for i in range(len(wake) - 1)})
        probe, n = max(counts.items(), key=lambda item: (item[1], item[0]), default=("", 0))
        if n < MIN_GROUP:
            break
        groups.append((probe, tuple(wake for wake in left if probe in wake)))
        left = [wake for wake in left if probe not in wake]
    return (*groups, *((wake, (wake,)) for wake in left))


def _lines_with(text: str, lines: Sequence[str], wake: str) -> list[int]:
    """The numbers of the lines that hold a literal, ascending; with a line feed before it: that start with it."""
    if text.count(wake) > len(lines) // DENSE and "\n" not in wake:
        return [number for number, line in enumerate(lines) if wake in line]
    if wake.startswith("\n"):
        first = [0] if text.startswith(wake[1:]) else []
        return first + [number + 1 for number in _lines_at(text, wake)]
    return _lines_at(text, wake)


def _lines_at(text: str, wake: str) -> list[int]:
    found: list[int] = []
    number = start = 0
    at = text.find(wake)
    while at >= 0:
        number += text.count("\n", start, at)
        found.append(number)
        end = text.find("\n", at)
        if end < 0:
            break
        number, start = number + 1, end + 1
        at = text.find(wake, end if at < end else start)
    return found
