"""Short gaps between kept units are closed where leaving them out saves nothing. Pure.

In a contiguous prompt a comment stands for what is left out, and costs tokens itself; at original positions every gap
ends a run, which some engines prefill one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentctx.prompt import Why
from agentctx.source import UnitKind
from agentctx.spec.draft import Draft

MARK_TOKENS = 10  # of a comment that says that lines were left out
RUN_TOKENS = 4  # worth paying for one run less


def close_gaps(draft: Draft, most: int) -> None:
    """Keep gaps of at most `most` tokens in all, the shortest first, as far as they fit."""
    found = sorted(gaps(draft), key=lambda gap: (sum(draft.sizes[unit] for unit in gap), gap[0]))
    for gap in found:
        if sum(draft.sizes[unit] for unit in gap) > most:
            return
        if draft.fits(gap):
            for unit in gap:
                if unit not in draft.kept:
                    draft.keep(unit, Why.GAP, 3)


def gaps(draft: Draft) -> Iterator[list[int]]:
    """Runs of left-out units with a kept one of the same file on both sides, whose spines are kept or in the run. Where
    the window itself left lines out, there is a mark anyway."""
    run: list[int] = []
    for unit in draft.index.document.units:
        if unit.index not in draft.kept:
            run.append(unit.index)
            continue
        if run and _is_inside(draft, run):
            yield run
        run = []


def _is_inside(draft: Draft, run: list[int]) -> bool:
    units = draft.index.document.units
    before, after = run[0] - 1, run[-1] + 1
    path = units[after].path
    if before < 0 or path is None or any(units[unit].path != path for unit in (before, *run)):
        return False
    if units[before].kind is UnitKind.FILE or any(units[unit].kind is UnitKind.ELISION for unit in run):
        return False
    return all(other in draft.kept or other in run for unit in run for other in units[unit].spine)
