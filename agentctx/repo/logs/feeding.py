"""Gives each format the lines that it must see, and no others, so that two dozen formats cost little. Pure.

A batch of lines is searched for each format's `wakes` as one text, at memory speed; only lines with a hit, and lines
while a format is `busy`, become calls.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentctx.repo.logs.found import Found, LogFormat, MakeFormat


class Feeder:
    """The formats of one log."""

    def __init__(self, formats: Sequence[MakeFormat]) -> None:
        self._formats = [make() for make in formats]
        self._literals = tuple(dict.fromkeys(wake for parser in self._formats for wake in parser.wakes))

    def feed(self, at: int, text: str) -> int:
        """Take whole lines, joined by line feeds, the first of which has the index `at`. Returns their number."""
        lines = text.split("\n")
        hits = {wake: _lines_with(text, wake) for wake in self._literals}
        for parser in self._formats:
            wakes = [hits[wake] for wake in parser.wakes if hits[wake]]
            if not parser.wakes:
                for i, line in enumerate(lines):
                    parser.feed(at + i, line)
            elif wakes or parser.busy:
                _feed(parser, at, lines, wakes)
        return len(lines)

    def finish(self) -> list[Found]:
        """What each format found, in their order."""
        return [parser.finish() for parser in self._formats]


def _feed(parser: LogFormat, at: int, lines: Sequence[str], wakes: Sequence[Sequence[int]]) -> None:
    """The lines with hits; from each on, all lines until the format is no longer busy."""
    i = 0 if parser.busy else -1
    pending = iter(sorted(set().union(*wakes)))
    while True:
        if i < 0 or not parser.busy:
            last = i
            i = next((hit for hit in pending if hit >= last), -1)
            if i < 0:
                return
        parser.feed(at + i, lines[i])
        i += 1
        if i == len(lines):
            return


def _lines_with(text: str, wake: str) -> list[int]:
    """The numbers of the lines that hold a literal, ascending."""
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
        at = text.find(wake, start)
    return found
