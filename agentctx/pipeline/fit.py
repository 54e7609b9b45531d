"""A selection that is within the budget as the model will read it. Repaired and checked."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from agentctx.assemble import restrict
from agentctx.config import OnOmission, RunOptions
from agentctx.errors import BudgetError
from agentctx.pipeline.services import Clock
from agentctx.prompt import OmissionReport, Pins, PromptDocument, Section, Selection, TokenizedPrompt, Tokenizer
from agentctx.spec.check import check
from agentctx.spec.gaps import MARK_TOKENS, RUN_TOKENS
from agentctx.spec.index import PromptIndex
from agentctx.spec.keep import keep
from agentctx.spec.leads import LEAD_SHARE
from agentctx.spec.pins import collect
from agentctx.spec.select import Float64, SelectOptions
from agentctx.spec.signatures import place
from agentctx.spec.tokens import tokenize


@dataclass(frozen=True, slots=True)
class Chosen:
    """A repaired selection; `n_tokens` counts what the model will read."""

    selection: Selection
    omissions: OmissionReport
    text: PromptDocument
    n_tokens: int


_ROUNDS = 8
GRAINS = 64  # of the budget: edited code counts in steps of one


@dataclass(frozen=True, slots=True)
class Fitter:
    """Selections of one packed prompt within one budget.

    `tokenized` is the window, which a drafter scores and dense prefill reads. Units are selected of `full`: the window
    and the signature lines that may be needed (`spec.signatures`). `index` and `pins` are those of `full`.
    """

    tokenized: TokenizedPrompt
    full: TokenizedPrompt
    tokenizer: Tokenizer
    options: RunOptions
    limit: int
    clock: Clock
    index: PromptIndex
    pins: Pins
    chat: bool = False  # whether the prompt holds a chat template

    def at_positions(self, scores: Float64) -> Chosen:
        """Selection for sparse prefill: kept tokens add up, nothing is tokenized anew."""
        selection, omissions = self.select(scores, self.limit)
        text, _ = restrict(self.full.document, selection.units)
        return Chosen(selection, omissions, text, selection.n_tokens)

    def whole(self, scores: Float64) -> Chosen:
        """Everything that was packed; log and tests aren't held to their share, there is nothing to share."""
        wanted = SelectOptions(limit=self.tokenized.n_tokens, evidence_share=1.0)
        window = PromptIndex(self.tokenized.document)
        pins = collect(self.tokenized.document, self.tokenized, index=window)
        selection, _ = keep(self.tokenized, scores, pins, wanted, index=window)
        moved = replace(selection, kept=tuple(replace(one, unit=self._moved(one.unit)) for one in selection.kept))
        omissions = check(self.full.document, moved, index=self.index)
        return Chosen(moved, omissions, self.tokenized.document, selection.n_tokens)

    def as_text(self, scores: Float64) -> Chosen:
        """Selection for a contiguous prompt, whose elision comments count: the limit given to the selection is
        moved until the text itself is within the budget and as near to it as the units allow."""
        goal = self.limit - self._slack()
        aim, best, least = goal, None, self.tokenized.n_tokens
        fits, too_much = 0, 2 * goal  # the largest aim that was within the budget, the least that was not
        for _ in range(_ROUNDS):
            try:
                selection, omissions = self.select(scores, aim, gap=MARK_TOKENS)
            except BudgetError:
                if aim >= goal:
                    raise
                break  # less than the user's limit can't be had; the message must name that limit
            text, _ = restrict(self.full.document, selection.units)
            n_tokens = self._count(text)
            if selection.limit > aim or selection.n_tokens > aim:  # --over-budget raise or dense: a finding says so
                return Chosen(replace(selection, limit=max(self.limit, n_tokens)), omissions, text, n_tokens)
            least, spare = min(least, n_tokens), goal - n_tokens
            if spare >= 0:
                fits = aim
                if best is None or n_tokens > best.n_tokens:
                    best = Chosen(replace(selection, limit=self.limit), omissions, text, n_tokens)
                if spare <= self.limit // 100 or selection.n_tokens >= self.tokenized.n_tokens:
                    break
            else:
                too_much = aim
            aim = _next_aim(aim, spare, fits, too_much)
            if not fits < aim < too_much:
                break
        if best is None:
            raise BudgetError(
                f"the budget of {self.limit} tokens can't hold the request, the failing test's header and their "
                "surroundings",
                hint="give at least --budget {need}, or choose --over-budget raise",
                need=least,
            )
        return best

    def _slack(self) -> int:
        """Tokens that are left free, so that edited code that grows by a line doesn't put out the last of the rest:
        what edited code lacks to a multiple of a small share of the budget."""
        grain = max(1, self.limit // GRAINS)
        units = self.tokenized.document.units
        edited = sum(len(self.tokenized.unit_tokens(u.index)) for u in units if u.section is Section.EDITED)
        return -edited % grain

    def _count(self, text: PromptDocument) -> int:
        """Tokens as they will be read: with a chat template by our engines, unit by unit, else as one text."""
        if self.chat:
            return tokenize(text, self.tokenizer).n_tokens
        return self.tokenizer.count_batch([text.text.decode("utf-8", "replace")])[0]

    def select(self, scores: Float64, limit: int, *, gap: int = RUN_TOKENS) -> tuple[Selection, OmissionReport]:
        """Units of `full`. scores: float64 (U,) of the window's units.

        `gap`: tokens that a gap between kept units costs; shorter ones are closed.
        """
        focused = self.tokenized.document.facts.focused
        wanted = SelectOptions(
            limit=limit,
            over_budget=self.options.over_budget,
            lead_share=1.0 if focused else LEAD_SHARE,
            stated=max(limit, self.limit),
            gap=gap,
        )
        repairs = self.options.on_omission is not OnOmission.FLAG
        with self.clock.stage("select"):
            return keep(self.full, self.spread(scores), self.pins, wanted, repairs=repairs, index=self.index)

    def spread(self, scores: Float64) -> Float64:
        """float64 (U,) of the window's units -> of those of `full`; signature lines have none."""
        at, n_lines = self._section
        return np.concatenate([scores[:at], np.zeros(n_lines), scores[at:]])

    def _moved(self, unit: int) -> int:
        """The number in `full` of a unit of the window."""
        at, n_lines = self._section
        return unit if unit < at else unit + n_lines

    @property
    def _section(self) -> tuple[int, int]:
        """Where the signature lines are in `full`, and how many units they are."""
        n_lines = len(self.full.document.units) - len(self.tokenized.document.units)
        return place(self.tokenized.document), n_lines


def _next_aim(aim: int, spare: int, fits: int, too_much: int) -> int:
    """By what is spare (or too much), within what is known to fit and not to fit."""
    wanted = aim + spare if spare > 0 else aim + spare - max(4, aim // 64)
    if fits and not fits < wanted < too_much:
        return (fits + too_much) // 2
    return max(1, min(wanted, too_much - 1))
