"""From a task to a checked edit: select, prefill, sample, try candidates in worktrees, land or show.

Who reads the prompt is a `readers.Reader`: a model that an engine runs here, or a server that takes text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agentctx.config import EditFormat, RunOptions
from agentctx.edit.candidates import CandidateReport, CandidatesResult, Event, try_candidates
from agentctx.edit.checks import Check, CheckResult, CheckStatus, make_log, pytest_check, pytest_guard, shell_check
from agentctx.edit.formats import edit_format
from agentctx.edit.instructions import answer_prefix, instructions, stop_strings, without_stop
from agentctx.edit.interpreter import find_python
from agentctx.edit.session import EditSession, edit_session
from agentctx.edit.target import EditTarget, make_target
from agentctx.errors import EditError, TaskError, UnavailableError, UsageError
from agentctx.pipeline.readers import Reader
from agentctx.pipeline.readers_embedded import EmbeddedReader
from agentctx.pipeline.readers_text import text_reader
from agentctx.pipeline.services import Clock, Services
from agentctx.pipeline.understand import Understood, understand
from agentctx.pipeline.window import DEFAULT_REQUEST, wanted_window
from agentctx.pipeline.writing import Writing
from agentctx.prompt import Completion, Finding, Task
from agentctx.repo.choose import targets_of
from agentctx.report import CandidateRow, CheckRow, EditRow, RunReport
from agentctx.source import SymbolKind
from agentctx.spec.protocols import SampleParams, Sampler

BATCH = 8  # samples per decode: the first that passes ends the run, so not all are drawn at once
NOTHING_COLLECTED = 5  # pytest's exit code: the file has no other tests
MAX_FUNCTION_LINES = 120  # a longer target is edited by search and replace, unless asked otherwise


@dataclass(frozen=True, slots=True)
class EditRequest:
    """What `agentctx edit` was asked for. `apply`: land what passes; else show it. `baseline`: dense beside it."""

    root: Path
    task: Task
    options: RunOptions
    apply: bool
    baseline: bool = False


def run_edit(request: EditRequest, services: Services, environment: Mapping[str, str]) -> RunReport:
    """Make the edit; the report's `edit.outcome` says how it ended.

    Raises:
        RepoError, TaskError, UsageError, UnavailableError, ConflictError, CheckInvalid: nothing was written.
    """
    if request.options.samples > 1 and request.options.temperature == 0:
        raise UsageError("--samples above 1 needs --temperature above 0: greedy samples are all the same")
    if services.cache_dir is None:
        raise UsageError("an edit needs a cache folder for its worktrees", hint="set AGENTCTX_CACHE_DIR")
    reader = _reader(request, services)
    services.progress("taking a snapshot")
    with edit_session(request.root, services.cache_dir, environment, protect=request.options.protect) as session:
        return _Run(replace(request, options=reader.options), services, reader.clock, reader, session).carry_out()


def _reader(request: EditRequest, services: Services) -> Reader:
    """Who reads the prompt: a server, or a model that an engine runs here.

    Raises:
        UsageError, UnavailableError: see `text_reader`; or there is no model.
    """
    served = services.text_model(request.options)
    if served is not None:
        if request.baseline:
            raise UsageError("--baseline needs a model that runs here: a server can't be asked for a dense prefill")
        return text_reader(served, request.options, services, Clock())
    name = request.options.model or services.default_model()
    if name is None:
        raise UnavailableError("no model is here to edit with", hint="agentctx models fetch qwen2.5-coder-1.5b")
    options = replace(request.options, model=name)
    return EmbeddedReader(
        services.model(name, options, wanted_window(options) + options.max_new), options, services, Clock()
    )


@dataclass(frozen=True, slots=True)
class _Run:
    request: EditRequest
    services: Services
    clock: Clock
    reader: Reader
    session: EditSession

    @property
    def options(self) -> RunOptions:
        return self.request.options

    def carry_out(self) -> RunReport:
        task = self._with_log()
        understood = understand(
            self.request.root, task, self.services, self.clock, options=self.options, withheld=self.reader.withheld
        )
        check, guard = self._checks(understood)
        form, target = self._form(understood)
        wish = f"{task.request or DEFAULT_REQUEST}\n\n{instructions(form, target)}"
        outcome = self.reader.select(understood, wish, answer_prefix(form, target))
        reading = self.reader.read(outcome)
        drawn: list[Completion] = []
        samples = self._samples(reading.sampler, stop_strings(form, target) if reading.continues else (), drawn)
        result = try_candidates(
            self.session, samples, reading.form(edit_format(form)), target, check, guard=guard, on_event=self._said
        )
        compared = self.reader.compare(outcome, reading) if self.request.baseline else ()
        row = self._finish(result, form, target, drawn)
        findings = (*outcome.report.findings, *reading.findings(), *compared, *_proof(result))
        report = replace(
            outcome.report, findings=tuple(dict.fromkeys(findings)), timings=self.reader.timings(), edit=row
        )
        report = reading.told(report)
        self.session.folder.write_report(report.to_dict())
        return report

    # ------------------------------------------------------------ before the model

    def _with_log(self) -> Task:
        """The task; without a log but with tests, the tests are run on the snapshot to make one."""
        task = self.request.task
        if task.logs or not task.tests:
            return task
        self.services.progress("running the test to make the log")
        python = find_python(self.request.root, self.session.environment).path
        with self.clock.stage("log"), self.session.worktree() as place:
            text = make_log(python, [ref.id for ref in task.tests], place, self.session.environment)
        return replace(task, logs=(("test run", text),))

    def _checks(self, understood: Understood) -> tuple[Check | None, Check | None]:
        """What decides, and what a passing edit must not break: the other tests of the failing test's file."""
        options = self.options
        if options.check_cmd is not None:
            return shell_check(options.check_cmd, timeout=options.check_timeout), None
        ids = [ref.id for ref in (understood.task.tests or understood.evidence.failing)]
        if ids:
            python = find_python(self.request.root, self.session.environment).path
            check = pytest_check(python, ids, timeout=options.check_timeout)
            return check, pytest_guard(python, ids, timeout=options.check_timeout)
        if self.request.apply:
            raise TaskError(
                "there is nothing to check the edit with, so it can't be applied",
                hint="give the failing test with --test, a log that names one, or --check-cmd; or leave out --apply",
            )
        return None, None

    def _form(self, understood: Understood) -> tuple[str, EditTarget | None]:
        """The format of the answer and, for a whole function, the function."""
        wanted = self.options.edit_format
        if wanted in (EditFormat.SEARCH_REPLACE, EditFormat.DIFF):
            return wanted.value, None
        graph = understood.index.graph
        targets, _ = targets_of(understood.located, understood.ranking, graph)
        kinds = (SymbolKind.FUNCTION, SymbolKind.METHOD)
        symbol = next((graph.symbols[s] for s in targets if graph.symbols[s].kind in kinds), None)
        short = symbol is not None and len(symbol.lines) <= MAX_FUNCTION_LINES
        if symbol is None or (wanted is EditFormat.AUTO and not short):
            if wanted is EditFormat.FUNCTION:
                raise TaskError("no function was found to edit", hint="name it with --focus PATH#SYMBOL")
            return EditFormat.SEARCH_REPLACE.value, None
        try:
            data = self.session.files.read(symbol.path)
            return EditFormat.FUNCTION.value, make_target(symbol.path, data, symbol.span, symbol.qualname)
        except EditError:
            if wanted is EditFormat.FUNCTION:
                raise
            return EditFormat.SEARCH_REPLACE.value, None

    # ------------------------------------------------------------ the model

    def _samples(self, reading: Sampler, stops: tuple[str, ...], drawn: list[Completion]) -> Iterator[Completion]:
        """Candidates from the one prefill, a batch at a time, as far as they are asked for."""
        options = self.options
        while len(drawn) < options.samples:
            n = min(BATCH, options.samples - len(drawn))
            params = SampleParams(
                max_new=options.max_new,
                temperature=options.temperature,
                top_p=options.top_p,
                seed=options.seed + len(drawn),
                stop=stops,
            )
            writing = Writing(self.services.progress, len(drawn), n)
            writing.begin()
            with self.clock.stage("decode"):
                found = reading.sample(n, params, writing)
            batch = [replace(one, text=without_stop(one.text, stops)) for one in found]
            drawn.extend(batch)
            yield from batch

    def _said(self, event: Event) -> None:
        number = "" if event.index is None else f" {event.index}"
        self.services.progress(f"checking {event.stage}{number} {event.status}")

    # ------------------------------------------------------------ after the model

    def _finish(
        self,
        result: CandidatesResult,
        form: str,
        target: EditTarget | None,
        drawn: list[Completion],
    ) -> EditRow:
        best = result.best
        applied = best.applied if best is not None else None
        outcome, patch = "failed", None
        if result.winner is not None and applied is not None:
            outcome = "shown"
            if self.request.apply:
                with self.clock.stage("land"):
                    patch = self.session.land(applied).patch
                outcome = "landed"
        if applied is not None and patch is None:
            patch = self.session.folder.write_patch(applied.diff)
        self.session.folder.mark(outcome)
        return EditRow(
            outcome=outcome,
            run=self.session.run,
            patch=str(patch) if patch is not None else None,
            diff=applied.diff.decode("utf-8", "replace") if applied is not None else "",
            format=form,
            target=f"{target.path}#{target.qualname}" if target is not None else None,
            candidates=tuple(_candidate(report, drawn[report.index]) for report in result.reports),
            checks=tuple(_checks(result)),
            notes=self._notes(best),
        )

    def _notes(self, best: CandidateReport | None) -> tuple[str, ...]:
        recovered = self.session.recovered
        return (*((recovered.message(),) if recovered is not None else ()), *(best.notes if best is not None else ()))


def _proof(result: CandidatesResult) -> Iterator[Finding]:
    """What can't be said of where the check's code came from."""
    checks = [result.baseline, *(report.check for report in result.reports)]
    ran = [check for check in checks if check is not None and check.status in ("passed", "failed")]
    if any(not check.origins.n_processes for check in ran):
        message = "the check left no proof that it ran the edited copy (no Python of it could be watched)"
        yield Finding("unproven-check", "warning", message)
    alone = result.guard is not None and result.guard.exit_code == NOTHING_COLLECTED
    if result.guard is not None and result.guard.status is not CheckStatus.PASSED and not alone:
        message = f"other tests of the same file {result.guard.status} before the edit, so they guard nothing"
        yield Finding("unguarded", "warning", message)
    binaries = sorted({name for check in ran for name in check.origins.binaries})
    if binaries:
        message = f"the check used compiled modules of your own tree: {', '.join(binaries[:5])}"
        yield Finding("compiled-modules", "note", message)


def _candidate(report: CandidateReport, completion: Completion) -> CandidateRow:
    return CandidateRow(report.index, report.status.value, report.message, completion.n_tokens, completion.finish)


def _checks(result: CandidatesResult) -> Iterator[CheckRow]:
    if result.baseline is not None:
        yield _check_row("baseline", result.baseline)
    if result.guard is not None:
        yield _check_row("other tests before", result.guard)
    for report in result.reports:
        if report.check is not None:
            yield _check_row(f"candidate {report.index}", report.check)


def _check_row(what: str, check: CheckResult) -> CheckRow:
    tail = "\n".join(check.output.strip().splitlines()[-8:])
    return CheckRow(what, check.status.value, check.exit_code, check.seconds, tail)
