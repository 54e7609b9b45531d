"""Who reads an edit's prompt and answers it: what `pipeline.edit` asks of a model here and of a server alike."""

from __future__ import annotations

from typing import Protocol

from agentctx.config import RunOptions
from agentctx.edit.formats import EditFormat
from agentctx.pipeline.select import Outcome
from agentctx.pipeline.services import Clock
from agentctx.pipeline.understand import Understood
from agentctx.prompt import Finding
from agentctx.report import RunReport
from agentctx.spec.protocols import Sampler


class Answers(Protocol):
    """A prompt that was read, ready to be answered."""

    @property
    def sampler(self) -> Sampler: ...

    @property
    def continues(self) -> bool:
        """Whether answers continue the prefix that was given; else they begin anew, and stop strings would end them."""

    def form(self, form: EditFormat) -> EditFormat:
        """What understands these answers."""

    def findings(self) -> tuple[Finding, ...]:
        """What must be known about how it was answered; complete when all answers are drawn."""

    def told(self, report: RunReport) -> RunReport:
        """The report with what is known of the reader, and without what it must not hold."""


class Reader(Protocol):
    @property
    def options(self) -> RunOptions: ...

    @property
    def clock(self) -> Clock: ...

    def withheld(self, path: str) -> str | None:
        """Why a file must not be in the prompt; None: it may."""

    def select(self, understood: Understood, wish: str, prefix: str) -> Outcome:
        """The prompt. `wish` is the request, `prefix` how the answer begins."""

    def read(self, outcome: Outcome) -> Answers: ...

    def compare(self, outcome: Outcome, answers: Answers) -> tuple[Finding, ...]:
        """The same request dense."""

    def timings(self) -> dict[str, float]: ...


def with_ttft(clock: Clock) -> dict[str, float]:
    """All stages, and the seconds between the packed window and the first token."""
    return {**clock.seconds, "ttft": ttft(clock)}


def ttft(clock: Clock) -> float:
    return sum(clock.seconds.get(stage, 0.0) for stage in ("pins", "score", "select", "prefill"))
