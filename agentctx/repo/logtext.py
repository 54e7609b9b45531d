"""The log's excerpt -> pieces of the prompt, within a share of the window: error lines before the rest. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from agentctx.assemble import Piece
from agentctx.prompt import Evidence, Tokenizer
from agentctx.source import UnitKind

GROUP_LINES = 8
_HEADING = "\nTest output:\n"


def log_pieces(evidence: Evidence, tokenizer: Tokenizer, room: int) -> tuple[tuple[Piece, ...], tuple[str, ...]]:
    """Pieces for the LOG section and notes. Groups with an error line come first when not everything fits."""
    if not evidence.excerpt.strip():
        return (), ()
    groups = _groups(evidence.excerpt, {line.strip() for line in evidence.error_lines if line.strip()})
    costs = tokenizer.count_batch([text for text, _ in groups])
    kept = _fitting(groups, costs, room)
    pieces = [Piece(("log", 0), UnitKind.SCAFFOLD, _HEADING.encode())]
    last = -1
    for number in sorted(kept):
        missing = number - last - 1
        text = f"[... {missing} part{'s' if missing > 1 else ''} of the log left out ...]\n" if missing else ""
        body = (text + groups[number][0]).encode("utf-8", "replace")
        pieces.append(Piece(("log", number + 1), UnitKind.LOG, body, spine=(("log", 0),)))
        last = number
    dropped = len(groups) - len(kept)
    notes = (f"{dropped} of {len(groups)} parts of the log exceed its share of the window and are left out",)
    return tuple(pieces), notes if dropped else ()


def _groups(excerpt: str, errors: set[str]) -> list[tuple[str, bool]]:
    """(text, holds an error line): runs of lines of one kind, at most GROUP_LINES long."""
    out: list[tuple[list[str], bool]] = []
    for line in excerpt.splitlines():
        is_error = any(error in line for error in errors) if line.strip() else False
        if out and out[-1][1] == is_error and len(out[-1][0]) < GROUP_LINES:
            out[-1][0].append(line)
        else:
            out.append(([line], is_error))
    return [("\n".join(lines) + "\n", is_error) for lines, is_error in out]


def _fitting(groups: Sequence[tuple[str, bool]], costs: Sequence[int], room: int) -> set[int]:
    """Groups that fit, those with errors first, each kind from the top; the first error is always kept."""
    order = sorted(range(len(groups)), key=lambda n: (not groups[n][1], n))
    kept: set[int] = set()
    used = 0
    for number in order:
        if used + costs[number] <= room or not kept:
            kept.add(number)
            used += costs[number]
    return kept
