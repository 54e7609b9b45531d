"""A model that an engine runs here: kept tokens at their original positions (sparse), or contiguous text (text, dense).

Every candidate comes from one prefill.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentctx.config import RunOptions
from agentctx.edit.formats import EditFormat
from agentctx.pipeline.readers import Answers, ttft, with_ttft
from agentctx.pipeline.select import SYSTEM, Outcome, Understood, select_for
from agentctx.pipeline.services import Clock, Model, Services
from agentctx.prompt import Finding, SparsePrompt
from agentctx.repo.pack import Frame
from agentctx.report import RunReport
from agentctx.spec.protocols import Engine, Session
from agentctx.spec.sparse import dense, to_sparse
from agentctx.spec.tokens import tokenize


@dataclass(frozen=True, slots=True)
class Prefilled:
    """Implements `Answers`."""

    sampler: Session
    notes: tuple[Finding, ...]
    continues: bool = True

    def form(self, form: EditFormat) -> EditFormat:
        return form

    def findings(self) -> tuple[Finding, ...]:
        return self.notes

    def told(self, report: RunReport) -> RunReport:
        return report


@dataclass(frozen=True, slots=True)
class EmbeddedReader:
    """Implements `Reader`."""

    main: Model
    options: RunOptions
    services: Services
    clock: Clock

    def withheld(self, path: str) -> str | None:
        return None  # nothing leaves the machine

    def select(self, understood: Understood, wish: str, prefix: str) -> Outcome:
        frame = Frame(SYSTEM, wish, self.main.chat, prefix)
        if self.options.drafter != "none" and self._drafts_for_itself():
            self._engine()  # first, so that the drafter runs on its weights
        return select_for("edit", understood, frame, self.options, self.services, self.clock, self.main)

    def read(self, outcome: Outcome) -> Prefilled:
        prompt, notes = self._prompt(outcome)
        engine = self._engine()
        self.services.progress(f"prefilling {len(prompt.ids)} tokens")
        with self.clock.stage("prefill"):
            return Prefilled(engine.prefill(prompt), notes)

    def compare(self, outcome: Outcome, answers: Answers) -> tuple[Finding, ...]:
        """How long a dense prefill takes, and whether the first token is the same."""
        assert isinstance(answers, Prefilled), "its own"
        engine = self._engine()
        self.services.progress("prefilling the whole window for comparison")
        with self.clock.stage("prefill_dense"):
            whole = engine.prefill(dense(outcome.tokenized))
        same = int(whole.logits.argmax()) == int(answers.sampler.logits.argmax())
        ours, theirs = ttft(self.clock), self.clock.seconds["prefill_dense"]
        word = "the same" if same else "another"
        message = (
            f"dense prefill of {outcome.tokenized.n_tokens} tokens took {theirs:.2f} s; selection and prefill took "
            f"{ours:.2f} s ({ours / theirs:.2f} of dense); dense prefers {word} first token"
        )
        return (Finding("baseline", "note", message),)

    def timings(self) -> dict[str, float]:
        return with_ttft(self.clock)

    def _drafts_for_itself(self) -> bool:
        return self.services.model(self.options.drafter, self.options, 0).info.folder == self.main.info.folder

    def _engine(self) -> Engine:
        self.services.progress(f"loading {self.main.info.name}")
        engine = self.main.load_engine()
        self.clock.seconds["load_main"] = engine.load_seconds
        return engine

    def _prompt(self, outcome: Outcome) -> tuple[SparsePrompt, tuple[Finding, ...]]:
        """Kept tokens at their original positions, or the contiguous text of what was kept."""
        room = self.main.info.max_position - self.options.max_new
        if outcome.report.decision.mode == "sparse":
            return to_sparse(outcome.tokenized, outcome.selection.units, max_position=room)
        text = tokenize(outcome.text, self.main.tokenizer)
        return to_sparse(text, range(len(text.document.units)), max_position=room)
