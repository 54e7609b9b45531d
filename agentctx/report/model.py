"""The report of a run. Its JSON form is a contract: `schema.json` describes it, tests validate against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agentctx.prompt import Finding, Omission, OmissionAction, OmissionReport, SymbolState, Task
from agentctx.source import Skipped

SCHEMA_VERSION = 1
SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class RepoRow:
    root: str
    head: str | None  # None: not a git tree, or no commit yet
    dirty: bool


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """All in tokens of `tokenizer`."""

    limit: int
    window: int
    packed: int
    kept: int
    tokenizer: str


@dataclass(frozen=True, slots=True)
class Change:
    """What the drafter's scores changed against ranking alone, in units of code."""

    added: int
    removed: int
    same: int


@dataclass(frozen=True, slots=True)
class Decision:
    """Sparse, dense or text, and why. The costs are in tokens' worth of dense prefill of the main model."""

    mode: str  # 'sparse' | 'dense' | 'text'
    reason: str
    drafter: str | None = None
    drafter_layers: int | None = None
    scorer: str | None = None
    cost_dense: float | None = None
    cost_selection: float | None = None
    cost_sparse: float | None = None
    change: Change | None = None
    drafter_weights: str | None = None  # what they are held in, and where; None: it was not run


@dataclass(frozen=True, slots=True)
class UnitRow:
    path: str | None
    start_line: int | None
    end_line: int | None
    kind: str
    symbol: str | None
    section: str
    tokens: int
    kept: bool
    tier: int | None
    pins: tuple[str, ...]
    score: float
    why: str
    reduced: bool = False


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One run of the check command. `status`: passed, failed, error, timeout."""

    what: str  # 'baseline' or 'candidate N'
    status: str
    exit_code: int | None
    seconds: float
    output: str  # the last lines


@dataclass(frozen=True, slots=True)
class CandidateRow:
    number: int
    status: str  # 'passed' | 'failed' | 'invalid' | 'duplicate' | 'not tried'
    detail: str
    tokens: int
    finish: str


@dataclass(frozen=True, slots=True)
class EditRow:
    """How an edit ended. `outcome`: landed, shown, failed."""

    outcome: str
    run: str
    patch: str | None
    diff: str
    format: str
    target: str | None
    candidates: tuple[CandidateRow, ...] = ()
    checks: tuple[CheckRow, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SecretRow:
    """A secret that was not sent. `path`: a path, or a section of the prompt. Never the value."""

    path: str
    line: int | None
    kind: str


@dataclass(frozen=True, slots=True)
class EngineRow:
    """What read the prompt, and what is known of that (None: unknown, a server didn't say).

    `host`: None for this process. `cached_tokens`: of the prompt, those that a prefix cache held. `secrets_kept`:
    whether secrets were held back, with the reason; `secrets`: those that were.
    """

    name: str
    reason: str  # why this engine
    host: str | None
    model: str
    context: int | None
    ttft: float | None  # seconds from the request to its first token
    decode_tokens_per_second: float | None
    prompt_tokens: int | None
    cached_tokens: int | None
    secrets_kept: bool
    secrets_reason: str
    secrets: tuple[SecretRow, ...] = ()
    peak_memory_bytes: int | None = None  # of this process, drafter included
    weights: str | None = None  # what they are held in, and where; None: unknown, a server doesn't say


@dataclass(frozen=True, slots=True)
class RunReport:
    command: str
    repo: RepoRow
    task: Task
    budget: BudgetRow
    decision: Decision
    units: tuple[UnitRow, ...] = ()
    omissions: OmissionReport = OmissionReport()
    findings: tuple[Finding, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)  # seconds
    cache: Mapping[str, Any] = field(default_factory=dict)
    edit: EditRow | None = None
    engine: EngineRow | None = None
    failing_tests: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    targets_guessed: bool = False

    @property
    def pins(self) -> dict[str, int]:
        """Number of kept units per pin reason, in tier order."""
        counts: dict[str, int] = {}
        for unit in self.units:
            for pin in unit.pins if unit.kept else ():
                counts[pin] = counts.get(pin, 0) + 1
        return dict(sorted(counts.items()))

    def to_dict(self, *, all_units: bool = False) -> dict[str, Any]:
        """The JSON form; dropped units only with `all_units`."""
        out: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "command": self.command,
            "repo": asdict(self.repo),
            "task": _task(self),
            "budget": asdict(self.budget),
            "decision": asdict(self.decision),
            "pins": self.pins,
            "units": [_unit(unit) for unit in self.units if unit.kept or all_units],
            "omissions": [omission_dict(o) for o in reported(self.omissions)],
            "omission_counts": dict(self.omissions.counts),
            "findings": [asdict(finding) for finding in self.findings],
            "skipped": [asdict(skipped) for skipped in self.skipped],
            "timings": {name: round(seconds, 4) for name, seconds in self.timings.items()},
            "cache": dict(self.cache),
        }
        if self.edit is not None:
            out["edit"] = asdict(self.edit)
        if self.engine is not None:
            out["engine"] = asdict(self.engine)
        return out


def _unit(unit: UnitRow) -> dict[str, Any]:
    return {**asdict(unit), "score": round(unit.score, 6)}


def _task(report: RunReport) -> dict[str, Any]:
    task = report.task
    return {
        "request": task.request,
        "tests": [ref.id for ref in task.tests],
        "focus": [ref.text for ref in task.focus],
        "pins": [ref.text for ref in task.pins],
        "logs": [name for name, _ in task.logs],
        "failing_tests": list(report.failing_tests),
        "targets": list(report.targets),
        "targets_guessed": report.targets_guessed,
    }


def reported(omissions: OmissionReport) -> tuple[Omission, ...]:
    """What a user must see: what was dropped, what is unclear, and what was repaired."""
    return tuple(o for o in omissions.omissions if o.is_finding or o.action is OmissionAction.REPAIRED)


def omission_dict(omission: Omission) -> dict[str, Any]:
    return {
        "symbol": omission.symbol,
        "name": omission.name,
        "kind": omission.kind,
        "path": omission.path,
        "line": omission.line,
        "state": omission.state.value,
        "severity": omission.severity,
        "action": omission.action.value,
        "candidates": list(omission.candidates),
        "referenced_from": [{"path": path, "line": line} for path, line in omission.referenced_from],
    }


def worst(report: RunReport) -> str | None:
    """The gravest severity among omissions and findings, None when there is nothing."""
    found = {o.severity for o in report.omissions.findings} | {f.severity for f in report.findings}
    return next((severity for severity in SEVERITIES if severity in found), None)


def exit_code(report: RunReport, fail_on: str) -> int:
    """1 when a finding is at least as grave as `fail_on` ('never': always 0), else 0."""
    found = worst(report)
    if fail_on == "never" or found is None:
        return 0
    return 1 if SEVERITIES.index(found) <= SEVERITIES.index(fail_on) else 0


def dropped_names(omissions: Sequence[Omission]) -> tuple[str, ...]:
    """Names of what is missing, for messages."""
    return tuple(dict.fromkeys(o.name for o in omissions if o.state is SymbolState.DROPPED))
