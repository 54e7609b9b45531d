"""What a drafter sees in one packed bug fix, in a file: attention over the code, and which units the fix edited."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agentctx.errors import UsageError
from agentctx.prompt import Float32, Int32

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Shot:
    """U: units of the code in the window, T: their tokens.

    `rows`: by group of queries, float32 (L, H, T), times T (so that 1 is the mean of a row over code alone).
    `rank`, `gold`, `sizes`: (U,) the ranking's score, edited lines, tokens. `lines`: gold lines in all, packed or not.
    `states`: by depth, (U, D) mean hidden state of each unit; `asked`: by depth and group, (D,) that of the queries.
    """

    id: str
    repo: str
    starts: Int32  # (U+1,) token offsets
    rank: Float32
    gold: Float32
    support: Array  # bool (U,): of use only to other units
    lines: int
    rows: dict[str, Float32]
    states: dict[int, Float32]
    asked: dict[int, dict[str, Float32]]
    seconds: float
    n_tokens: int

    @property
    def sizes(self) -> Int32:
        return np.diff(self.starts)


def save(shot: Shot, file: Path) -> None:
    """The file is there whole, or not at all."""
    arrays: dict[str, Any] = {
        "facts": np.array([shot.id, shot.repo]),
        "numbers": np.array([shot.lines, shot.seconds, shot.n_tokens]),
        "starts": shot.starts,
        "rank": shot.rank,
        "gold": shot.gold,
        "support": shot.support,
    }
    arrays.update({f"rows.{name}": rows.astype(np.float16) for name, rows in shot.rows.items()})
    arrays.update({f"states.{depth}": states.astype(np.float16) for depth, states in shot.states.items()})
    arrays.update({f"asked.{depth}.{group}": state for depth, of in shot.asked.items() for group, state in of.items()})
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f"{file.stem}.part.npz")
    np.savez(partial, **arrays)
    partial.replace(file)


def _asked(found: dict[str, Float32]) -> dict[int, dict[str, Float32]]:
    out: dict[int, dict[str, Float32]] = {}
    for name, state in found.items():
        depth, _, group = name.partition(".")
        out.setdefault(int(depth), {})[group] = state
    return out


def load(file: Path) -> Shot:
    """Raises: UsageError: the file is no such file."""
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as found:
            lines, seconds, n_tokens = found["numbers"].tolist()
            return Shot(
                id=str(found["facts"][0]),
                repo=str(found["facts"][1]),
                starts=found["starts"],
                rank=found["rank"],
                gold=found["gold"],
                support=found["support"],
                lines=int(lines),
                rows={n[5:]: found[n].astype(np.float32) for n in found.files if n.startswith("rows.")},
                states={int(n[7:]): found[n].astype(np.float32) for n in found.files if n.startswith("states.")},
                asked=_asked({n[6:]: found[n] for n in found.files if n.startswith("asked.")}),
                seconds=seconds,
                n_tokens=int(n_tokens),
            )
    except (OSError, KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise UsageError(f"{file} holds no capture: {error!r}", hint="remove it, and it is made again") from error
