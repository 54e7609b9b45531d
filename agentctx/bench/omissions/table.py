"""What `agentctx bench omissions` prints."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from agentctx.bench.omissions.measure import Measured, Silent


def as_text(found: Measured, seed: int) -> str:
    kinds = Counter(one.kind for one in found.silent)
    lines = [
        f"{found.language}, {found.oracle}: {found.selections} selections, {found.files} files of kept text",
        f"{found.missed} names missed by the oracle ({found.known} more that it misses in the whole repository, "
        f"{found.outside} of libraries)",
        f"{found.reported} reported, {found.on_line} of them on the line",
        f"{len(found.silent)} silent" + "".join(f", {n} {kind}" for kind, n in sorted(kinds.items())),
    ]
    if found.refused:
        lines.append(f"{found.refused} budgets were too small for what must stay")
    if found.broken:
        lines.append(f"{found.broken} files of kept text that can't be parsed")
    return "\n".join([*lines, *(f"  {silent_line(one, seed)}" for one in found.silent)])


def silent_line(one: Silent, seed: int) -> str:
    missed = one.missed
    case = f"case {seed}/{one.selection} (--focus {one.focus} --budget {one.budget})"
    return f"{case}: {missed.path}:{missed.line} {missed.name} ({one.kind}): {missed.message}"


def as_json(found: Measured, seed: int) -> dict[str, Any]:
    return {"seed": seed, **asdict(found)}
