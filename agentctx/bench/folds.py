"""Dealing examples out for cross-validation. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def folds(repos: Sequence[str], n: int) -> list[int]:
    """The fold of each example, by the repository of each: whole repositories stay together, the largest are dealt
    out first; the examples of a single repository are dealt out in blocks."""
    counts = Counter(repos)
    if len(counts) == 1:
        return [at * n // len(repos) for at in range(len(repos))]
    held = [0] * n
    of: dict[str, int] = {}
    for repo in sorted(counts, key=lambda name: (-counts[name], name)):
        of[repo] = held.index(min(held))
        held[of[repo]] += counts[repo]
    return [of[repo] for repo in repos]
