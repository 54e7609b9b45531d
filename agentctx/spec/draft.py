"""A selection in the making: which units are kept, what they cost, and how much room is left."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from agentctx.prompt import Finding, KeptUnit, Selection, TokenizedPrompt, Why
from agentctx.source import UnitKind
from agentctx.spec.index import PromptIndex


def unit_sizes(tokenized: TokenizedPrompt) -> list[int]:
    """Tokens of each unit."""
    edges = tokenized.unit_starts.tolist()
    return [end - start for start, end in pairwise(edges)]


@dataclass(slots=True)
class Draft:
    """Mutable on purpose and never shared: select, repair and fill each build on one and return a Selection.

    `cap` bounds the tokens of the log and test sections together.
    """

    index: PromptIndex
    sizes: list[int]
    limit: int
    cap: int
    kept: dict[int, KeptUnit] = field(default_factory=dict)
    n_tokens: int = 0
    n_evidence: int = 0

    @classmethod
    def resume(cls, index: PromptIndex, tokenized: TokenizedPrompt, selection: Selection, cap: int) -> Draft:
        draft = cls(index, unit_sizes(tokenized), selection.limit, cap)
        for kept in selection.kept:
            draft.add(kept)
        return draft

    def add(self, kept: KeptUnit) -> None:
        """Keep a unit that isn't kept yet, whatever it costs. A header makes the signature line needless."""
        assert kept.unit not in self.kept
        self.kept[kept.unit] = kept
        self.n_tokens += self.sizes[kept.unit]
        if self.index.is_evidence[kept.unit]:
            self.n_evidence += self.sizes[kept.unit]
        for line in self.index.lines.get(kept.unit, ()):
            self._drop_line(line)

    def _drop_line(self, line: int) -> None:
        """Drop a signature line and the headings that are left without one."""
        if line not in self.kept:
            return
        units = self.index.document.units
        self._remove(line)
        for heading in reversed(units[line].spine):
            if not any(heading in units[unit].spine for unit in self.kept if units[unit].kind is UnitKind.SIGNATURE):
                self._remove(heading)

    def _remove(self, unit: int) -> None:
        del self.kept[unit]
        self.n_tokens -= self.sizes[unit]

    def missing(self, unit: int) -> list[int]:
        """The unit and its spine, as far as they aren't kept, in order."""
        return sorted(u for u in (unit, *self.index.document.units[unit].spine) if u not in self.kept)

    def fits(self, units: Iterable[int], *, reserve: int = 0) -> bool:
        """Whether there is room for units that aren't kept yet, with `reserve` tokens to spare."""
        n_tokens = n_evidence = 0
        for unit in units:
            n_tokens += self.sizes[unit]
            if self.index.is_evidence[unit]:
                n_evidence += self.sizes[unit]
        within_cap = not n_evidence or self.n_evidence + n_evidence <= self.cap
        return within_cap and self.n_tokens + n_tokens + reserve <= self.limit

    def keep(self, unit: int, why: Why, tier: int, score: float = 0.0) -> list[int]:
        """Keep a unit and its spine; the units that this adds, in order."""
        new = self.missing(unit)
        for other in new:
            self.add(KeptUnit(other, tier, why if other == unit else Why.SPINE, score=score if other == unit else 0.0))
        return new

    def selection(self, findings: tuple[Finding, ...]) -> Selection:
        kept = tuple(self.kept[unit] for unit in sorted(self.kept))
        return Selection(kept, self.limit, self.n_tokens, findings)
