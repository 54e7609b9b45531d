"""The scorers by name. `spec.scorers.base` says what one is; each module holds those of a family, with their papers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agentctx.errors import UsageError
from agentctx.spec.scorers.base import Scorer
from agentctx.spec.scorers.calibration import Calibration, needed
from agentctx.spec.scorers.contrast import EvidenceHeads, Icr, QRHead
from agentctx.spec.scorers.hybrid import Hybrid
from agentctx.spec.scorers.probe import Probe
from agentctx.spec.scorers.published import Claa, GemFilter, SnapKV, SpecPC, SpecPrefill, Window

Make = Callable[[Calibration | None], Scorer]  # what was learned of the drafter


SCORERS: Mapping[str, Make] = {
    "hybrid": lambda known: Hybrid(needed(known, "hybrid")),
    "evidence-heads": lambda known: EvidenceHeads(needed(known, "evidence-heads").evidence),
    "probe": Probe,
    "qrhead": QRHead,
    "icr": lambda _: Icr(),
    "selective-icr": lambda _: Icr((1 / 3, 2 / 3)),
    "specprefill": lambda _: SpecPrefill(),
    "early-exit": lambda _: SpecPrefill(1 / 3),
    "window": lambda _: Window(),
    "snapkv": lambda _: SnapKV(),
    "specpc": lambda _: SpecPC(),
    "gemfilter": lambda _: GemFilter(),
    "claa": lambda _: Claa(),
}
LEARNED = ("hybrid", "evidence-heads", "probe", "qrhead")


def make(name: str, known: Calibration | None) -> Scorer:
    """The scorer of this name, with what was learned of the drafter.

    Raises:
        UsageError: there is no such scorer. EngineUnavailable: it is learned, and nothing is known of this drafter.
    """
    if name not in SCORERS:
        raise UsageError(f"there is no scorer {name!r}", hint=f"choose one of: {', '.join(SCORERS)}")
    if name in LEARNED:
        needed(known, name)
    return SCORERS[name](known)
