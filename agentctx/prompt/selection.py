"""Pins and the selection: what is kept, in which tier, and why. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class PinReason(StrEnum):
    """Names are a contract: they appear in reports. Tiers are in `PIN_TIERS`."""

    SYSTEM = "system"
    TOOLS = "tools"
    REQUEST = "request"
    TAIL = "tail"
    LOG_EVIDENCE = "log-evidence"
    FAILING_TEST = "failing-test"
    FRAME = "frame"
    TARGET = "target"
    CALLER = "caller"
    USER = "user"
    CALLEE = "callee"
    TYPE = "type"
    BASE = "base"
    OVERRIDE = "override"
    IMPLEMENTS = "implements"
    IMPORT = "import"
    CONSTANT = "constant"
    FIELD = "field"
    RE_EXPORT = "re-export"
    CONFIG = "config"


PIN_TIERS: Mapping[PinReason, int] = {
    **dict.fromkeys((PinReason.SYSTEM, PinReason.TOOLS, PinReason.REQUEST, PinReason.TAIL), 0),
    **dict.fromkeys(
        (
            PinReason.LOG_EVIDENCE,
            PinReason.FAILING_TEST,
            PinReason.FRAME,
            PinReason.TARGET,
            PinReason.CALLER,
            PinReason.USER,
        ),
        1,
    ),
    **dict.fromkeys(
        (
            PinReason.CALLEE,
            PinReason.TYPE,
            PinReason.BASE,
            PinReason.OVERRIDE,
            PinReason.IMPLEMENTS,
            PinReason.IMPORT,
            PinReason.CONSTANT,
            PinReason.FIELD,
            PinReason.RE_EXPORT,
            PinReason.CONFIG,
        ),
        2,
    ),
}


@dataclass(frozen=True, slots=True)
class Pin:
    """An atomic group: all of `units` are kept, or `core` alone with the group marked `reduced`."""

    reason: PinReason
    units: tuple[int, ...]  # sorted, spine included
    subject: str  # symbol id, path or section, for people
    core: tuple[int, ...] = ()  # what a reduced group keeps; () = can't be reduced
    guessed: bool = False
    distance: int = 0  # hops from a target; drops the farthest first

    @property
    def tier(self) -> int:
        return PIN_TIERS[self.reason]


@dataclass(frozen=True, slots=True)
class Pins:
    """Every pin, by tier, then rule order, then first unit. `findings`: what should be pinned and isn't packed."""

    pins: tuple[Pin, ...] = ()
    findings: tuple[Finding, ...] = ()


class Why(StrEnum):
    """How a unit came to be kept."""

    PINNED = "pinned"
    SCORED = "scored"
    SPINE = "spine"
    REPAIRED = "repaired"
    GAP = "gap"  # so short that leaving it out saved nothing


@dataclass(frozen=True, slots=True)
class KeptUnit:
    unit: int
    tier: int
    why: Why
    pins: tuple[PinReason, ...] = ()
    score: float = 0.0
    reduced: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about the run that the user must know. `code` is stable: 'budget', 'guessed-target', ..."""

    code: str
    severity: str  # 'error' | 'warning' | 'note'
    message: str
    path: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """Units to keep: sorted by index, closed under spines, `n_tokens <= limit` unless a finding says why not."""

    kept: tuple[KeptUnit, ...]
    limit: int
    n_tokens: int
    findings: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        order = [kept.unit for kept in self.kept]
        if order != sorted(set(order)):
            raise ValueError("kept units must be sorted and distinct")

    @property
    def units(self) -> frozenset[int]:
        return frozenset(kept.unit for kept in self.kept)
