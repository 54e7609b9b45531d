"""What became of each symbol that kept text refers to. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class SymbolState(StrEnum):
    """What the selection did to a symbol that kept text refers to."""

    KEPT = "kept"  # all of its packed units
    SIGNATURE = "signature"  # at least its header
    DROPPED = "dropped"
    AMBIGUOUS = "ambiguous"  # several candidates, not all of them kept
    UNKNOWN = "unknown"  # not resolvable: said, never counted as fine


class OmissionAction(StrEnum):
    NONE = "none"
    REPAIRED = "repaired"  # its header (or import) was added
    FLAGGED = "flagged"
    NOT_PACKED = "not-packed"  # it was outside the window, so nothing could be added


@dataclass(frozen=True, slots=True)
class Omission:
    """A symbol that kept text refers to, and what became of it. `severity` is 'none' when all is well.

    `symbol` is its id; the name where it is ambiguous or unknown; `path:line` for a statement: an import, a re-export,
    one that binds a function's variable (whose name `name` is).
    """

    symbol: str
    name: str
    kind: str  # a SymbolKind, a NeedKind, 'import', 'config' or 'unknown'
    path: str | None
    line: int | None
    state: SymbolState
    severity: str  # 'error' | 'warning' | 'note' | 'none'
    action: OmissionAction
    referenced_from: tuple[tuple[str, int | None], ...] = ()  # (path or section, line), sorted
    candidates: tuple[str, ...] = ()  # when ambiguous: symbol ids, sorted

    @property
    def is_finding(self) -> bool:
        return self.state not in (SymbolState.KEPT, SymbolState.SIGNATURE)


@dataclass(frozen=True, slots=True)
class OmissionReport:
    """Every symbol that kept text refers to: worst first, then by symbol."""

    omissions: tuple[Omission, ...] = ()

    @property
    def findings(self) -> tuple[Omission, ...]:
        """Those that are neither kept nor kept as a signature."""
        return tuple(omission for omission in self.omissions if omission.is_finding)

    @property
    def repaired(self) -> tuple[Omission, ...]:
        return tuple(omission for omission in self.omissions if omission.action is OmissionAction.REPAIRED)

    @property
    def counts(self) -> Mapping[str, int]:
        """How many symbols are in each state; every state occurs."""
        counts = dict.fromkeys((state.value for state in SymbolState), 0)
        for omission in self.omissions:
            counts[omission.state.value] += 1
        return counts
