"""Rows of scorers as a table, with paired bootstrap intervals. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from agentctx.bench.bootstrap import interval, shown
from agentctx.bench.replay.scored import ScoredRow


@dataclass(frozen=True, slots=True)
class Cell:
    """Means over cases; a case with an error counts as nothing kept. `closure`: of the definitions that fixes call.

    `safe`: of the names that kept code uses, those that are kept or there as a signature; None where it isn't known.
    """

    n: int
    recall: float
    all: float
    closure: float | None
    errors: int
    safe: float | None = None


def cell(rows: Sequence[ScoredRow]) -> Cell:
    need, names = sum(row.need for row in rows), sum(row.names for row in rows)
    return Cell(
        n=len(rows),
        recall=float(np.mean([row.recall for row in rows])),
        all=float(np.mean([row.all for row in rows])),
        closure=sum(row.have for row in rows) / need if need else None,
        errors=sum(row.error is not None for row in rows),
        safe=sum(row.safe for row in rows) / names if names else None,
    )


def paired(rows: Sequence[ScoredRow], others: Sequence[ScoredRow]) -> tuple[float, float, float]:
    """The mean difference of recall, case by case, and its 95 % interval by bootstrap over cases."""
    by_case = {row.case: row.recall for row in others}
    return interval([row.recall - by_case[row.case] for row in rows])


def table(rows: Sequence[ScoredRow], seconds: Mapping[str, float], against: Sequence[str] = ("rank", "bm25")) -> str:
    """A line for each scorer and keep rate, of each way of selecting; then the last scorers against others."""
    return "\n".join(_lines(rows, seconds, against))


def _lines(rows: Sequence[ScoredRow], seconds: Mapping[str, float], against: Sequence[str]) -> Iterator[str]:
    for way, of_way in _by(rows, "way").items():
        keeps = sorted({row.keep for row in of_way})
        yield f"{way}: recall / all / closure at keep"
        yield f"  {'scorer':16} {'s':>6}  " + "  ".join(f"{keep:^17g}" for keep in keeps)
        for scorer, own in _by(of_way, "scorer").items():
            cells = [cell([row for row in own if row.keep == keep]) for keep in keeps]
            time = f"{seconds[scorer]:6.1f}" if scorer in seconds else f"{'':6}"
            yield f"  {scorer:16} {time}  " + "  ".join(_shown(one) for one in cells)
        scorers = _by(of_way, "scorer")
        if any(row.names for row in of_way):
            yield "  of the names that kept code uses, kept or as a signature:"
            for scorer, own in scorers.items():
                safe = (cell([row for row in own if row.keep == keep]).safe for keep in keeps)
                yield f"  {scorer:24} " + "  ".join(
                    f"{one:^17.3f}" if one is not None else f"{'-':^17}" for one in safe
                )
        for scorer in (name for name in scorers if name not in ("random", "bm25", "rank")):
            for other in (name for name in against if name in scorers):
                yield from _difference(scorers[scorer], scorers[other], keeps, scorer, other)
    failed = sorted({(row.case, row.error) for row in rows if row.error is not None})
    yield from (f"  {case}: {error}" for case, error in failed)


def _difference(
    rows: Sequence[ScoredRow], others: Sequence[ScoredRow], keeps: Sequence[float], scorer: str, other: str
) -> Iterator[str]:
    said = []
    for keep in keeps:
        said.append(shown(paired([r for r in rows if r.keep == keep], [r for r in others if r.keep == keep])))
    yield f"  {scorer} - {other}: " + "  ".join(said)


def _shown(one: Cell) -> str:
    closure = f"{one.closure:.2f}" if one.closure is not None else "  - "
    return f"{one.recall:.3f} {one.all:.3f} {closure:>4} "


def _by(rows: Sequence[ScoredRow], key: str) -> dict[str, list[ScoredRow]]:
    found: dict[str, list[ScoredRow]] = {}
    for row in rows:
        found.setdefault(getattr(row, key), []).append(row)
    return found


def data(rows: Sequence[ScoredRow], seconds: Mapping[str, float]) -> dict[str, Any]:
    """The same as data, with every row."""
    return {"rows": [asdict(row) for row in rows], "seconds": dict(seconds)}
