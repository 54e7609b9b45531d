"""What a repository's history says of its files: what was edited lately, and what together. Pure.

Only the line of first parents of HEAD counts: what was merged counts once, at its merge, and nothing from the future
of HEAD or from other branches is seen. Ages are commits, not days: the same history says the same on any day.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

WINDOW = 500  # commits that are looked back on
FADE = 10.0  # commits after which recency has halved
CROWD = 40  # a commit of more files says nothing of any two of them

LOG = ("--first-parent", "-m", "--name-only", "--no-renames", "-z", "--format=%x01%H %P%x02")  # what `commits` reads


class Commit(NamedTuple):
    """`parents`: ids. `paths`: what it changed against its first parent, sorted."""

    id: str
    parents: tuple[str, ...]
    paths: tuple[str, ...]


def commits(log: str) -> Iterator[Commit]:
    """The commits of `git log` with the arguments LOG, newest first."""
    for block in log.split("\x01")[1:]:
        ids, _, names = block.partition("\x02")
        commit, *parents = ids.split(" ")
        paths = {name.removeprefix("\n") for name in names.split("\0")} - {"", "\n"}
        yield Commit(commit, tuple(parent for parent in parents if parent), tuple(sorted(paths)))


@dataclass(frozen=True, slots=True)
class History:
    """The last commits, newest first, each as its paths. Both questions answer 0 (no sign) to 1 (strongest)."""

    commits: tuple[tuple[str, ...], ...]
    _ages: Mapping[str, int] = field(init=False, repr=False, compare=False)
    _touching: Mapping[str, tuple[int, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        touching: dict[str, list[int]] = {}
        for age, paths in enumerate(self.commits):
            for path in paths:
                touching.setdefault(path, []).append(age)
        object.__setattr__(self, "_ages", {path: ages[0] for path, ages in touching.items()})
        object.__setattr__(self, "_touching", {path: tuple(ages) for path, ages in touching.items()})

    def recency(self, path: str) -> float:
        """1 for what the last commit touched, half of it FADE commits ago, 0 for what none of them did."""
        age = self._ages.get(path)
        return 1.0 / (1.0 + age / FADE) if age is not None else 0.0

    def cochange(self, path: str, tests: Sequence[str]) -> float:
        """Of the commits that touch one of the tests the share that touches `path`, too; small commits weigh more."""
        ages = sorted({age for test in tests for age in self._touching.get(test, ())})
        told = [age for age in ages if len(self.commits[age]) <= CROWD]
        total = sum(1.0 / len(self.commits[age]) for age in told)
        own = frozenset(self._touching.get(path, ()))
        return sum(1.0 / len(self.commits[age]) for age in told if age in own) / total if total else 0.0


def history(found: Sequence[Commit]) -> History:
    return History(tuple(commit.paths for commit in found[:WINDOW]))
