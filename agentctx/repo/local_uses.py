"""Uses of variables that the own function binds in another unit: what a unit needs besides definitions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agentctx.source import LocalUse, Unit


class Seen(NamedTuple):
    """A use of a local variable. `bound`: the rows where its scope binds it, first to last."""

    row: int
    name: str
    bound: Sequence[int]


def local_uses(units: Sequence[Unit], unit_at: Sequence[int], seen: Iterable[Seen]) -> tuple[LocalUse, ...]:
    """The first use in each unit, by unit and name; none where the unit or its spine binds the name."""
    found: dict[tuple[int, str, tuple[int, ...]], int] = {}
    for use in seen:
        unit = unit_at[use.row]
        bound = tuple(sorted({unit_at[row] for row in use.bound}))
        if bound and unit not in bound and not set(bound).intersection(units[unit].spine):
            key = (unit, use.name, bound)
            found[key] = min(use.row + 1, found.get(key, use.row + 1))
    return tuple(LocalUse(unit, name, line, bound) for (unit, name, bound), line in sorted(found.items()))
