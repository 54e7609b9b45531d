"""A model that an engine runs on token ids: kept tokens at their original positions (sparse), or contiguous text.

Every candidate comes from one prefill. Where the engine is a server on another machine, files that hold secrets by
their name aren't packed, and a prompt with a value that looks like one is not sent: ids can't be turned back.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from agentctx.config import RunOptions
from agentctx.edit.formats import EditFormat
from agentctx.models.memory import peak_bytes
from agentctx.pipeline.readers import Answers, ttft, with_ttft
from agentctx.pipeline.redaction import refuse_secrets
from agentctx.pipeline.secret_rules import file_reason
from agentctx.pipeline.select import Outcome, select_for
from agentctx.pipeline.services import Clock, Model, Services
from agentctx.pipeline.understand import Understood
from agentctx.pipeline.window import SYSTEM
from agentctx.prompt import Completion, Finding, SparsePrompt
from agentctx.repo.pack import Frame
from agentctx.report import EngineRow, RunReport
from agentctx.spec.engines.address import Address
from agentctx.spec.protocols import Engine, Hear, SampleParams, Session
from agentctx.spec.sparse import to_sparse, whole_window
from agentctx.spec.tokens import tokenize


@dataclass(slots=True)
class Metered:
    """Implements `Sampler`: counts what it draws."""

    session: Session
    n_tokens: int = 0
    seconds: float = 0.0

    def sample(self, n: int, params: SampleParams, hear: Hear | None = None) -> list[Completion]:
        started = time.perf_counter()
        drawn = self.session.sample(n, params, hear)
        self.seconds += time.perf_counter() - started
        # Greedy samples are one sample, handed out n times.
        self.n_tokens += sum(one.n_tokens for one in (drawn[:1] if params.temperature <= 0 else drawn))
        return drawn


@dataclass(frozen=True, slots=True)
class Prefilled:
    """Implements `Answers`. `row`: what is known of the engine before the answers are drawn."""

    sampler: Metered
    notes: tuple[Finding, ...]
    row: EngineRow
    continues: bool = True

    def form(self, form: EditFormat) -> EditFormat:
        return form

    def findings(self) -> tuple[Finding, ...]:
        return self.notes

    def told(self, report: RunReport) -> RunReport:
        meter = self.sampler
        speed = round(meter.n_tokens / meter.seconds, 4) if meter.n_tokens and meter.seconds else None
        here = self.row.host is None
        row = replace(
            self.row,
            ttft=round(report.timings.get("ttft", 0.0), 4),
            decode_tokens_per_second=speed,
            peak_memory_bytes=peak_bytes() if here else None,
        )
        return replace(report, engine=row)


@dataclass(frozen=True, slots=True)
class EmbeddedReader:
    """Implements `Reader`."""

    main: Model
    options: RunOptions
    services: Services
    clock: Clock

    def withheld(self, path: str) -> str | None:
        return file_reason(path) if self._leaves() else None

    def select(self, understood: Understood, wish: str, prefix: str) -> Outcome:
        frame = Frame(SYSTEM, wish, self.main.chat, prefix)
        if self.options.drafter != "none" and self._drafts_for_itself():
            self._engine()  # first, so that the drafter runs on its weights
        return select_for("edit", understood, frame, self.options, self.services, self.clock, self.main)

    def read(self, outcome: Outcome) -> Prefilled:
        prompt, notes = self._prompt(outcome)
        if self._address is not None and self._leaves():
            refuse_secrets(outcome.text, outcome.understood.index.data.__getitem__, self._address.host)
        engine = self._engine()
        self.services.progress(f"prefilling {len(prompt.ids)} tokens")
        with self.clock.stage("prefill"):
            session = engine.prefill(prompt)
        return Prefilled(Metered(session), notes, self._row(prompt, session, engine.form))

    def compare(self, outcome: Outcome, answers: Answers) -> tuple[Finding, ...]:
        """How long a dense prefill takes, and whether the first token is the same."""
        assert isinstance(answers, Prefilled), "its own"
        engine = self._engine()
        self.services.progress("prefilling the whole window for comparison")
        with self.clock.stage("prefill_dense"):
            window = whole_window(outcome.tokenized)
            whole = engine.prefill(window)
        same = _first(whole) == _first(answers.sampler.session)
        ours, theirs = ttft(self.clock), self.clock.seconds["prefill_dense"]
        word = "the same" if same else "another"
        message = (
            f"dense prefill of {window.total} tokens took {theirs:.2f} s; selection and prefill took "
            f"{ours:.2f} s ({ours / theirs:.2f} of dense); dense prefers {word} first token"
        )
        return (Finding("baseline", "note", message),)

    def timings(self) -> dict[str, float]:
        return with_ttft(self.clock)

    @property
    def _address(self) -> Address | None:
        return self.main.address

    def _leaves(self) -> bool:
        """Whether the prompt goes to another machine."""
        return self._address is not None and not self._address.is_local

    def _row(self, prompt: SparsePrompt, session: Session, form: str | None) -> EngineRow:
        """Here every prompt is prefilled anew; a server's prefix cache may hold a part of it."""
        host = None if self._address is None else self._address.host
        if host is None:
            reason = "not looked for, nothing leaves this process"
        elif self._leaves():
            reason = "looked for, the server is another machine; none were found in the prompt"
        else:
            reason = "not looked for, the server runs on this machine"
        return EngineRow(
            name=self.main.engine.engine,
            reason=self.main.engine.reason,
            host=host,
            model=self.main.info.name,
            context=self.main.info.max_position,
            ttft=None,
            decode_tokens_per_second=None,
            prompt_tokens=len(prompt.ids),
            cached_tokens=session.n_cached,
            secrets_kept=self._leaves(),
            secrets_reason=reason,
            weights=form,
        )

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


def _first(session: Session) -> tuple[int, ...]:
    """The first token that greedy decoding gives, none at an end: servers don't tell logits."""
    return session.sample(1, SampleParams(max_new=1))[0].ids
