"""The order of code files in the prompt: consecutive prompts share a beginning, which prefix caches then hold. Pure.

An edit moves its file to the section behind, changes scores a little, and so changes a few units in the files that
are only just worth showing. So files that are surely shown and unlikely to be edited come first, then those that are
expected to be edited, then the rest, less worth later. Within a group the path decides: scores are too unsteady.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from agentctx.repo.choose import Choice, UnitKey
from agentctx.repo.packfiles import PackInput

SURE = 4  # halvings of the best worth down to which a file is surely shown
LAST = 64  # halvings of a file of which nothing was offered


def in_order(paths: Iterable[str], given: PackInput, choice: Choice) -> list[str]:
    """The paths, sorted; the same for prompts that differ little."""
    expected = {given.graph.symbols[symbol].path for symbol in (*choice.targets, *given.located.frames)}
    halvings = _halvings(choice.scores)

    def key(path: str) -> tuple[int, bool, str]:
        if path in expected:
            return 1, path in given.recent, path
        n = halvings.get(path, LAST)
        return 0 if n <= SURE else 2 + n, path in given.recent, path

    return sorted(paths, key=key)


def _halvings(scores: Mapping[UnitKey, tuple[float, str]]) -> dict[str, int]:
    """How often the best worth must be halved to be no more than that of the file's best unit."""
    best: dict[str, float] = {}
    for (path, _), (score, _) in scores.items():
        best[path] = max(score, best.get(path, 0.0))
    top = max(best.values(), default=0.0)
    return {path: min(LAST, math.ceil(math.log2(top / score))) if score > 0 else LAST for path, score in best.items()}
