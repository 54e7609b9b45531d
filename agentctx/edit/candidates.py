"""Several answers to one request: the first whose edit passes the check wins.

The check must fail on the unedited tree first. Each candidate is applied and checked in a clean worktree of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from agentctx.edit.checks import Check, CheckResult, CheckStatus, Place, run_check
from agentctx.edit.formats import EditFormat, parse_answer
from agentctx.edit.session import Applied, EditSession
from agentctx.edit.target import EditTarget
from agentctx.errors import CheckInvalid, EditError, EditFormatError, TaskError
from agentctx.prompt import Completion, EditPatch


class CandidateStatus(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    TIMEOUT = "timeout"
    UNUSABLE = "unusable"  # the answer is unclear, broken, or touches what it must not
    DUPLICATE = "duplicate"
    UNCHECKED = "unchecked"  # usable, and there is no check


_ORDER = (
    CandidateStatus.PASSED,
    CandidateStatus.UNCHECKED,
    CandidateStatus.FAILED,
    CandidateStatus.TIMEOUT,
    CandidateStatus.ERROR,
    CandidateStatus.UNUSABLE,
    CandidateStatus.DUPLICATE,
)


@dataclass(frozen=True, slots=True)
class CandidateReport:
    """What became of one answer. `message` is one sentence for people."""

    index: int
    status: CandidateStatus
    message: str = ""
    notes: tuple[str, ...] = ()
    applied: Applied | None = None
    check: CheckResult | None = None
    duplicate_of: int | None = None


@dataclass(frozen=True, slots=True)
class CandidatesResult:
    """`baseline` is the check on the unedited tree (None without a check). Candidates after the winner did not run.

    `guard` is the guard on the unedited tree: None where none was given or no candidate came that far.
    """

    baseline: CheckResult | None
    reports: tuple[CandidateReport, ...]
    winner: int | None  # index in `reports`
    guard: CheckResult | None = None

    @property
    def best(self) -> CandidateReport | None:
        """The winner, else the one that came closest: by status, then by index."""
        return min(self.reports, key=lambda report: (_ORDER.index(report.status), report.index), default=None)


@dataclass(frozen=True, slots=True)
class Event:
    """Progress. `stage` is 'baseline' or 'candidate'; `status` is '' when it starts."""

    stage: str
    index: int | None = None
    status: str = ""


def ignore(event: Event) -> None:
    """The listener for callers that show no progress."""


def try_candidates(
    session: EditSession,
    completions: Iterable[Completion],
    form: EditFormat,
    target: EditTarget | None,
    check: Check | None,
    *,
    guard: Check | None = None,
    on_event: Callable[[Event], None] = ignore,
    must_fail_first: bool = True,
) -> CandidatesResult:
    """Try `completions` in order until one passes; an iterator is not read further than that.

    `guard`: a second check that a passing candidate must pass, too. It counts only where it passes on the unedited
    tree: what failed before is not the edit's fault.

    Raises:
        TaskError: the check passes on the unedited tree, or can't run there.
        CheckInvalid: the check looked at the user's own tree.
        ConflictError: a file that an answer edits was changed after the session began.
    """
    baseline = None
    if check is not None:
        on_event(Event("baseline"))
        baseline = run_baseline(session, check, must_fail=must_fail_first)
        on_event(Event("baseline", status=baseline.status))
    reports: list[CandidateReport] = []
    watch = _Guard(session, guard)
    for index, completion in enumerate(completions):
        on_event(Event("candidate", index))
        report = _try_one(session, index, completion, form, target, (check, watch), reports)
        reports.append(report)
        on_event(Event("candidate", index, report.status))
        if report.status in (CandidateStatus.PASSED, CandidateStatus.UNCHECKED):
            return CandidatesResult(baseline, tuple(reports), index, watch.before)
    return CandidatesResult(baseline, tuple(reports), None, watch.before)


@dataclass(slots=True)
class _Guard:
    """The second check. It is run on the unedited tree once, when the first candidate gets that far."""

    session: EditSession
    check: Check | None
    before: CheckResult | None = None

    def broken_by(self, place: Place) -> CheckResult | None:
        """The guard's failure in an edited worktree; None where it passes, or failed before as well."""
        if self.check is None:
            return None
        if self.before is None:
            with self.session.worktree() as clean:
                self.before = run_check(self.check, clean, self.session.environment)
            self.before.require_proof(self.check)
        if self.before.status is not CheckStatus.PASSED:
            return None
        after = run_check(self.check, place, self.session.environment)
        after.require_proof(self.check)
        return None if after.status is CheckStatus.PASSED else after


def run_baseline(session: EditSession, check: Check, *, must_fail: bool = True) -> CheckResult:
    """The check on the unedited tree; see `try_candidates` for what it raises."""
    with session.worktree() as place:
        result = run_check(check, place, session.environment)
    result.require_proof(check)
    if result.status is CheckStatus.PASSED and must_fail:
        raise TaskError(
            "the check already passes on the unedited tree, so it can't tell a good edit from none",
            hint="give the failing test with --test, or a --check-cmd that fails",
        )
    if result.status in (CheckStatus.ERROR, CheckStatus.TIMEOUT) and must_fail:
        how = "timed out" if result.status is CheckStatus.TIMEOUT else f"can't run (exit code {result.exit_code})"
        raise TaskError(f"the check {how} on the unedited tree: {_last_lines(result.output)}")
    return result


def _try_one(
    session: EditSession,
    index: int,
    completion: Completion,
    form: EditFormat,
    target: EditTarget | None,
    checks: tuple[Check | None, _Guard],
    earlier: list[CandidateReport],
) -> CandidateReport:
    check, guard = checks
    applied: Applied | None = None
    notes: tuple[str, ...] = ()
    try:
        patch = _parse(session, completion, form, target)
        notes = patch.notes
        with session.worktree() as place:
            applied = session.apply(patch, place.worktree)
            notes = applied.patch.notes
            for report in earlier:
                if report.applied is not None and report.applied.changes == applied.changes:
                    message = f"the same edit as candidate {report.index}"
                    status = CandidateStatus.DUPLICATE
                    return CandidateReport(index, status, message, notes, duplicate_of=report.index)
            if check is None:
                return CandidateReport(index, CandidateStatus.UNCHECKED, "no check was given", notes, applied)
            result = run_check(check, place, session.environment)
            result.require_proof(check)
            broken = guard.broken_by(place) if result.status is CheckStatus.PASSED else None
        if broken is not None:
            message = f"it passes the check but breaks other tests: {_last_lines(broken.output)}"
            return CandidateReport(index, CandidateStatus.FAILED, message, notes, applied, broken)
    except CheckInvalid:
        raise
    except EditError as error:
        return CandidateReport(index, CandidateStatus.UNUSABLE, error.message, notes, applied)
    return CandidateReport(index, CandidateStatus(result.status), _outcome(result), notes, applied, result)


def _parse(session: EditSession, completion: Completion, form: EditFormat, target: EditTarget | None) -> EditPatch:
    """The answer's patch. One that ran into the token limit counts only if its last line didn't matter.

    Raises:
        EditError: the answer can't be used.
    """
    patch = parse_answer(completion.text, form, target, session.files.read)
    if completion.finish != "length":
        return patch
    shorter = completion.text.rstrip("\n").rpartition("\n")[0]
    try:
        same = parse_answer(shorter, form, target, session.files.read).files == patch.files
    except EditFormatError:
        same = False
    if not same:
        raise EditFormatError("the answer was cut off at the token limit")
    return patch


def _outcome(result: CheckResult) -> str:
    if result.status is CheckStatus.PASSED:
        return "the check passes"
    if result.status is CheckStatus.TIMEOUT:
        return f"the check timed out after {result.seconds:.0f} s"
    return f"the check {result.status} (exit code {result.exit_code}): {_last_lines(result.output)}"


def _last_lines(output: str) -> str:
    """The lines that say most: what failed, else the last ones."""
    lines = [line.strip() for line in output.split("\n") if line.strip()]
    telling = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return " | ".join(telling[:2] or lines[-3:]) or "no output"
