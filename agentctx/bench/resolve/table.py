"""A comparison of references as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agentctx.bench.resolve.measure import KINDS, Checked, Comparison, Row
from agentctx.source import Resolution

_HEAD = ("kind", "defined here", "agree", "wrong", "ambiguous", "unknown", "precision", "recall")


def as_json(found: Comparison) -> dict[str, Any]:
    """`{"schema_version", "oracle", "files", "references", "rows": [...]}`; ratios are null where nothing counts."""
    rows = [
        {
            "kind": row.kind,
            "total": row.total,
            "agreed": row.agreed,
            "wrong": row.wrong,
            "ambiguous": row.ambiguous,
            "unknown": row.unknown,
            "precision": row.precision,
            "recall": row.recall,
        }
        for row in found.rows
    ]
    counts = {"files": found.files, "references": found.references}
    return {"schema_version": 1, "oracle": found.oracle, **counts, "rows": rows}


def as_text(found: Comparison) -> str:
    """A Markdown table."""
    lines = [
        f"{found.oracle}: {found.references} references in {found.files} files",
        "",
        _line(_HEAD),
        _line(["---", *["---:"] * (len(_HEAD) - 1)]),
        *(_line(_cells(row)) for row in found.rows),
    ]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(row: Row) -> list[str]:
    counts = (row.total, row.agreed, row.wrong, row.ambiguous, row.unknown)
    ratios = (row.precision, row.recall)
    return [row.kind, *map(str, counts), *("" if ratio is None else f"{ratio:.3f}" for ratio in ratios)]


def differences(found: Comparison) -> Iterator[str]:
    """One line per reference that is wrong or not resolved, by kind and place."""
    for kind in KINDS.values():
        for checked in found.checked:
            if KINDS[checked.link.reference.role] == kind and not checked.agrees and _counts(checked):
                yield _difference(kind, checked)


def _counts(checked: Checked) -> bool:
    return checked.inside or checked.link.state is Resolution.RESOLVED


def _difference(kind: str, checked: Checked) -> str:
    reference = checked.link.reference
    name = f"{reference.receiver}.{reference.name}" if reference.receiver else reference.name
    ours = " ".join(checked.link.targets) or "-"
    theirs = " ".join(f"{place.path or 'outside'}:{place.line + 1}" for place in checked.answer)
    what = "wrong" if checked.link.state is Resolution.RESOLVED else checked.link.state.value
    return f"{kind} {what} {reference.path}:{reference.line} {name}: {ours} | {theirs}"
