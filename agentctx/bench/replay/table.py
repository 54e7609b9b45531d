"""Rows of a replay as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from agentctx.bench.replay.measure import Figures, Row, figures


def table(rows: Sequence[Row], budgets: Sequence[int]) -> str:
    """Figures per budget and repository, and of all."""
    out = []
    for budget in budgets:
        out.append(f"budget {budget}")
        here = [row for row in rows if row.budget == budget]
        for repo in dict.fromkeys(row.repo for row in here):
            out.append(_line(repo, figures([row for row in here if row.repo == repo])))
        out.append(_line("all", figures(here)))
    return "\n".join(out)


def _line(name: str, of: Figures) -> str:
    closure = f"{of.closure:.2f}" if of.closure is not None else "   -"
    low, high = of.interval
    return (
        f"  {name:26} n={of.n:<4} recall {of.recall:.3f}  all {of.all:.3f} [{low:.2f}, {high:.2f}]  closure {closure}"
        f"  kept {of.kept:6.0f}  over {of.over}  errors {of.errors}"
    )


def data(rows: Sequence[Row], budgets: Sequence[int]) -> dict[str, Any]:
    """The same as data, with every row."""
    found: dict[str, Any] = {}
    for budget in budgets:
        here = [row for row in rows if row.budget == budget]
        of = {
            repo: asdict(figures([r for r in here if r.repo == repo])) for repo in dict.fromkeys(r.repo for r in here)
        }
        found[str(budget)] = {**of, "all": asdict(figures(here))}
    return {"figures": found, "rows": [asdict(row) for row in rows]}
