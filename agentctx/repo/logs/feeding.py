"""Gives each format the lines that it must see, and no others, so that two dozen formats cost little. Pure.

A batch of lines is searched for each format's `wakes` as one text, at memory speed; only lines with a hit, and lines
while a format is `busy`, become calls.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentctx.repo.logs.found import Found, LogFormat, LooksBack, MakeFormat


class Feeder:
    """The formats of one log."""

    def __init__(self, formats: Sequence[MakeFormat]) -> None:
        self._formats = [make() for make in formats]
        self._literals = tuple(dict.fromkeys(wake for parser in self._formats for wake in parser.wakes))

    def feed(self, numbers: Sequence[int], text: str) -> None:
        """Take whole lines, joined by line feeds, and their indexes in the log, ascending."""
        lines = text.split("\n")
        text += "\n"  # a literal may end with a line feed: the line's end
        hits = {wake: _lines_with(text, wake) for wake in self._literals}
        for parser in self._formats:
            wakes = [hits[wake] for wake in parser.wakes if hits[wake]]
            if not parser.wakes:
                for number, line in zip(numbers, lines, strict=True):
                    parser.feed(number, line)
            elif wakes or parser.busy:
                _feed(parser, numbers, lines, wakes)

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


def _lines_with(text: str, wake: str) -> list[int]:
    """The numbers of the lines that hold a literal, ascending; with a line feed before it: that start with it."""
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
