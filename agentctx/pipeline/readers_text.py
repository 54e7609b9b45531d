"""A server that takes text: what leaves the machine, and what is said of it.

The host decides about secrets: for one on this machine nothing is held back, for any other files that hold secrets
by their name aren't packed, and values that look like secrets are replaced by placeholders.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from agentctx.config import RunOptions
from agentctx.edit.formats import EditFormat
from agentctx.errors import UsageError
from agentctx.pipeline.choosing import Server
from agentctx.pipeline.readers import Answers, with_ttft
from agentctx.pipeline.redaction import Guarded, Redaction, find
from agentctx.pipeline.secret_rules import file_reason
from agentctx.pipeline.select import Outcome, select_for
from agentctx.pipeline.services import Clock, Services, TextModel
from agentctx.pipeline.understand import Understood
from agentctx.pipeline.window import SYSTEM
from agentctx.prompt import Conversation, Finding, PromptDocument, Tokenizer
from agentctx.repo.pack import Frame
from agentctx.report import EditRow, EngineRow, RunReport
from agentctx.spec.protocols import TextEngine, TextSession


def text_reader(model: TextModel, options: RunOptions, services: Services, clock: Clock) -> TextReader:
    """Connects first: a server that isn't there is said before anything else is done.

    Raises:
        UsageError: --force-sparse: text has no token positions.
        UnavailableError: no server, no such model.
    """
    if options.force_sparse:
        raise UsageError(
            f"--force-sparse can't be had with --engine {model.engine}: a server that takes text sets the positions",
            hint="leave it out, or choose an engine that runs the model itself",
        )
    services.progress("asking the server for its models")
    engine = model.connect()
    clock.seconds["load_main"] = engine.load_seconds
    return TextReader(engine, model.engine, model.tokenizer, options, services, clock)


@dataclass(frozen=True, slots=True)
class TextReader:
    """Implements `Reader`."""

    engine: TextEngine
    name: str
    tokenizer: Tokenizer
    options: RunOptions
    services: Services
    clock: Clock

    def withheld(self, path: str) -> str | None:
        return None if self.engine.served.is_local else file_reason(path)

    def select(self, understood: Understood, wish: str, prefix: str) -> Outcome:
        """The prefix is asked for in words: not every server continues a message that was begun for it."""
        begin = f"\n\nBegin your answer with these lines, exactly as they are:\n{prefix}" if prefix else ""
        served = self.engine.served
        server = (Server(served.host, served.context), self.tokenizer)
        frame = Frame(SYSTEM, wish + begin)
        return select_for("edit", understood, frame, self.options, self.services, self.clock, None, server)

    def read(self, outcome: Outcome) -> TextAnswers:
        redaction = Redaction()
        if not self.engine.served.is_local:
            redaction = find(outcome.text, outcome.understood.index.data.__getitem__)
        conversation = _hidden(conversation_of(outcome.text), redaction)
        self.services.progress(f"asking {self.engine.served.host}")
        return TextAnswers(self.engine.open(conversation), self.engine, self.name, redaction)

    def compare(self, outcome: Outcome, answers: Answers) -> tuple[Finding, ...]:
        raise UsageError("a server can't be asked for a dense prefill")

    def timings(self) -> dict[str, float]:
        return with_ttft(self.clock)


def conversation_of(document: PromptDocument) -> Conversation:
    """The contiguous prompt as two messages: its first unit is the system's."""
    system = document.unit_text(0)
    user = document.text[len(system) :]
    return Conversation(system.decode("utf-8", "replace"), user.decode("utf-8", "replace").lstrip("\n"))


def _hidden(said: Conversation, redaction: Redaction) -> Conversation:
    return Conversation(redaction.hide(said.system), redaction.hide(said.user))


@dataclass(frozen=True, slots=True)
class TextAnswers:
    """Implements `Answers`."""

    sampler: TextSession
    engine: TextEngine
    name: str
    redaction: Redaction
    continues: bool = False

    def form(self, form: EditFormat) -> EditFormat:
        return Guarded(form, self.redaction) if not self.engine.served.is_local else form

    def findings(self) -> tuple[Finding, ...]:
        return tuple(Finding("server", "note", note) for note in self._notes())

    def _notes(self) -> Iterator[str]:
        if self.engine.served.context is None:
            yield "the server doesn't say how long its context is: --budget alone bounds the prompt"
        yield from self.sampler.notes

    def told(self, report: RunReport) -> RunReport:
        usage = self.sampler.usage
        edit = _masked(report.edit, self.redaction) if report.edit is not None else None
        timings = dict(report.timings)
        if usage.ttft is not None:  # the decode stage began with the request
            timings["prefill"] = usage.ttft
            timings["decode"] = max(0.0, timings.get("decode", 0.0) - usage.ttft)
            timings["ttft"] = timings.get("ttft", 0.0) + usage.ttft
        task = replace(report.task, request=self.redaction.hide(report.task.request))
        return replace(report, task=task, edit=edit, engine=self._row(), timings=timings)

    def _row(self) -> EngineRow:
        served, usage = self.engine.served, self.sampler.usage
        return EngineRow(
            name=self.name,
            reason="--engine",
            host=served.host,
            model=served.name,
            context=served.context,
            ttft=_rounded(usage.ttft),
            decode_tokens_per_second=_rounded(usage.decode_tokens_per_second),
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            secrets_kept=not served.is_local,
            secrets_reason=self._reason(),
            secrets=self.redaction.rows,
        )

    def _reason(self) -> str:
        if self.engine.served.is_local:
            return "not looked for, the server runs on this machine"
        n = len(self.redaction.rows)
        return f"looked for, the server is another machine; {n} place{'' if n == 1 else 's'} held back"


def _masked(edit: EditRow, redaction: Redaction) -> EditRow:
    """Lines around an edit and what a check prints may hold secrets, too; the patch file is left as it must be."""
    return replace(
        edit,
        diff=redaction.hide(edit.diff),
        candidates=tuple(replace(one, detail=redaction.hide(one.detail)) for one in edit.candidates),
        checks=tuple(replace(one, output=redaction.hide(one.output)) for one in edit.checks),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
