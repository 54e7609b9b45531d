"""What the user sees while a model writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

WIDEST = 60  # characters of a line


@dataclass(slots=True)
class Writing:
    """Implements `protocols.Hear`: says how far `n` candidates are, of which the first has the number `first`."""

    say: Callable[[str], None]
    first: int
    n: int
    _lines: int = field(default=0, init=False)  # ended ones, of all candidates
    _last: str = field(default="", init=False)  # the line that a candidate writes, where it is the only one

    def begin(self) -> None:
        self.say(self._who())

    def __call__(self, sample: int, piece: str) -> None:
        self._lines += piece.count("\n")
        if self.n > 1:
            self.say(f"{self._who()}: {self._lines} lines")
            return
        self._last = (self._last + piece).rpartition("\n")[2]
        self.say(f"{self._who()}, line {self._lines + 1}: {_shown(self._last)}")

    def _who(self) -> str:
        if self.n == 1:
            return f"drawing candidate {self.first}"
        return f"drawing candidates {self.first} to {self.first + self.n - 1}"


def _shown(line: str) -> str:
    """Its beginning, without anything that a terminal would obey."""
    plain = "".join(char if char.isprintable() else " " for char in line[: WIDEST + 1])
    return plain if len(line) <= WIDEST else f"{plain[:WIDEST]}..."
