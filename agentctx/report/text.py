"""A report as plain text for a terminal. No colours here: the shell adds them on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from agentctx.prompt import Omission, OmissionAction, SymbolState
from agentctx.report.model import EditRow, EngineRow, RunReport, UnitRow, reported
from agentctx.source import UnitKind

_MARKS = {"error": "error  ", "warning": "warning", "note": "note   ", "none": "       "}


def render(report: RunReport, *, all_units: bool = False) -> str:
    """The whole report: budget, decision, pins, units by file, omissions, findings, timings."""
    parts = [
        *_head(report),
        "",
        *_units(report, all_units),
        "",
        *omission_lines(report),
        *_findings(report),
        *_skipped(report),
        "",
        _timings(report),
    ]
    return "\n".join(parts).rstrip() + "\n"


def summary(report: RunReport) -> str:
    """What must be seen even when the report itself isn't asked for: budget, decision, omissions, findings."""
    return "\n".join([*_head(report), *omission_lines(report), *_findings(report), *_skipped(report)])


def render_edit(report: RunReport) -> str:
    """What `agentctx edit` prints: selection, omissions, timings, candidates, diff, outcome last."""
    parts = [*_head(report), *omission_lines(report), *_findings(report), *_skipped(report), _timings(report)]
    if report.engine is not None:
        parts += _engine(report.engine)
    if report.edit is not None:
        parts += ["", *_edit(report.edit)]
    return "\n".join(parts) + "\n"


_SECRETS_SHOWN = 10
_USES_SHOWN = 3


def _peak(engine: EngineRow) -> str:
    """A server's memory is its own business."""
    if engine.host is not None:
        return ""
    n_bytes = engine.peak_memory_bytes
    return "; peak memory unknown" if n_bytes is None else f"; peak memory {n_bytes / 1e9:.1f} GB"


def _engine(engine: EngineRow) -> Iterator[str]:
    context = f"context {engine.context:,}" if engine.context is not None else "context unknown"
    held = f"({engine.weights}) " if engine.weights is not None else ""
    place = f"at {engine.host}" if engine.host is not None else f"{held}in this process"
    yield f"engine {engine.name} ({engine.reason}): {engine.model} {place}, {context}"
    counts = f"{_known(engine.prompt_tokens, ',')} prompt tokens, {_known(engine.cached_tokens, ',')} of them cached"
    speed = f"{_known(engine.decode_tokens_per_second, '.1f')} tokens/s"
    yield f"it read {counts}; first token after {_known(engine.ttft, '.2f')} s, then {speed}{_peak(engine)}"
    yield f"secrets: {engine.secrets_reason}"
    for secret in engine.secrets[:_SECRETS_SHOWN]:
        yield f"  not sent: {secret.path}{'' if secret.line is None else f':{secret.line}'} {secret.kind}"
    if len(engine.secrets) > _SECRETS_SHOWN:
        yield f"  and {len(engine.secrets) - _SECRETS_SHOWN} more (--format json lists them all)"


def _known(value: float | None, form: str) -> str:
    return "unknown" if value is None else format(value, form)


def _edit(edit: EditRow) -> Iterator[str]:
    yield f"answer: {edit.format}{f' for {edit.target}' if edit.target else ''}"
    for check in edit.checks:
        if check.what == "baseline":
            yield f"before the edit: the check {check.status} in {check.seconds:.1f} s"
    for candidate in edit.candidates:
        head = f"candidate {candidate.number}: {candidate.status} ({candidate.tokens} tokens)"
        yield f"{head} {candidate.detail}".rstrip()
    for note in edit.notes:
        yield f"note: {note}"
    if edit.diff:
        yield "\n" + edit.diff.rstrip("\n") + "\n"
    yield outcome_line(edit)


def outcome_line(edit: EditRow) -> str:
    """How it ended and where the patch lies."""
    if edit.outcome == "landed":
        return f"landed: the edit is in your tree; undo it with: agentctx edit --undo {edit.run}; patch: {edit.patch}"
    if edit.outcome == "shown":
        return f"not applied: --apply would land it; patch: {edit.patch}"
    where = f"; the best one's patch: {edit.patch}" if edit.patch else ""
    return f"nothing landed: no candidate passed the check{where}"


def check_text(report: RunReport) -> str:
    """What `agentctx check` prints: the findings, or that there are none."""
    lines = [*(omission_lines(report) if report.omissions.omissions else ()), *_findings(report)]
    return "\n".join([*(lines or ["no findings"]), *_skipped(report)])


def _head(report: RunReport) -> Iterator[str]:
    budget, decision = report.budget, report.decision
    yield (
        f"kept {budget.kept:,} of {budget.packed:,} packed tokens "
        f"(limit {budget.limit:,}, window {budget.window:,}, tokenizer {budget.tokenizer})"
    )
    drafter = f", drafter {decision.drafter}" if decision.drafter else ""
    if decision.drafter_weights:
        drafter += f" ({decision.drafter_weights})"
    yield f"mode {decision.mode}{drafter}: {decision.reason}"
    if decision.cost_dense:
        total = (decision.cost_selection or 0) + (decision.cost_sparse or 0)
        yield (
            f"estimate: dense {decision.cost_dense:,.0f}, selection {decision.cost_selection or 0:,.0f} + sparse "
            f"{decision.cost_sparse or 0:,.0f} (in tokens of dense prefill; {total / decision.cost_dense:.2f} of dense)"
        )
    if decision.change is not None:
        change = decision.change
        yield f"the drafter's scores brought in {change.added} units, put out {change.removed}, left {change.same}"
    guessed = " (guessed: no focus and no frame named one)" if report.targets_guessed else ""
    if report.targets:
        yield f"target {', '.join(report.targets)}{guessed}"
    if report.pins:
        yield "pins " + ", ".join(f"{name} {count}" for name, count in report.pins.items())
    lines = [unit.tokens for unit in report.units if unit.kind == UnitKind.SIGNATURE and unit.kept]
    if lines:
        noun = "definition" if len(lines) == 1 else "definitions"
        yield f"signature lines of {len(lines)} {noun} that kept code uses: {sum(lines):,} tokens"


def _units(report: RunReport, all_units: bool) -> Iterator[str]:
    path: str | None = None
    for unit in merged(unit for unit in report.units if unit.path is not None and (unit.kept or all_units)):
        if unit.path != path:
            path = unit.path
            yield path or ""
        yield "  " + unit_line(unit)


def merged(units: Iterable[UnitRow]) -> Iterator[UnitRow]:
    """Neighbours that are in (or out) for the same reason, as one row with the lines and tokens of all."""
    row: UnitRow | None = None
    for unit in units:
        if row is None or not _same_reason(row, unit):
            if row is not None:
                yield row
            row = unit
            continue
        kind = row.kind if row.kind == unit.kind else "code"
        row = replace(row, end_line=unit.end_line, tokens=row.tokens + unit.tokens, kind=kind)
    if row is not None:
        yield row


def _same_reason(one: UnitRow, other: UnitRow) -> bool:
    follows = one.path == other.path and one.end_line is not None and other.start_line == one.end_line + 1
    return follows and (one.kept, one.tier, one.reduced, one.why) == (other.kept, other.tier, other.reduced, other.why)


def unit_line(unit: UnitRow) -> str:
    lines = f"{unit.start_line}-{unit.end_line}"
    mark = " " if unit.kept else "-"
    tier = f"tier {unit.tier}" if unit.tier is not None else "dropped"
    reduced = " reduced" if unit.reduced else ""
    return f"{mark} {lines:>11} {unit.kind:<9} {unit.tokens:>5} tokens  {tier}{reduced}  {unit.why}"


def omission_lines(report: RunReport) -> Iterator[str]:
    """What was dropped although kept text refers to it, with the reason and what would pin it."""
    counts = report.omissions.counts
    n_kept = counts["kept"] + counts["signature"]
    total = sum(counts.values())
    if not total:
        yield "omission check: no symbol of the repository is referred to"
        return
    shown = reported(report.omissions)
    repaired = sum(1 for o in shown if o.action is OmissionAction.REPAIRED)
    said = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    yield f"omission check: {total} symbols referred to, {n_kept} in the prompt ({said}; {repaired} repaired)"
    for group in _alike(o for o in shown if o.action is not OmissionAction.REPAIRED):
        yield from _omission(group[0]) if len(group) == 1 else _omissions(group)


def _alike(omissions: Iterable[Omission]) -> Iterable[list[Omission]]:
    """Errors one by one; of the rest those of one file that were dropped for one reason together."""
    groups: dict[tuple[object, ...], list[Omission]] = {}
    for omission in omissions:
        lone = omission.severity == "error" or omission.state is not SymbolState.DROPPED or omission.path is None
        key = (omission.symbol, omission.name) if lone else ()
        groups.setdefault((omission.severity, omission.path, omission.action, *key), []).append(omission)
    return groups.values()


def _omission(omission: Omission) -> Iterator[str]:
    place = f" {omission.path}:{omission.line}" if omission.path else ""
    yield f"{_omission_head(omission)} {omission.name}{place} used in {_uses(omission.referenced_from)}"
    if omission.state is SymbolState.DROPPED and omission.path:
        name = omission.symbol.partition("::")[2]
        spot = f"{omission.path}#{name}" if name else f"{omission.path}:{omission.line}"
        yield f"          {_dropped_because(omission)}; --pin '{spot}' keeps it"


def _omissions(group: list[Omission]) -> Iterator[str]:
    first = group[0]
    names = ", ".join(f"{omission.name} :{omission.line}" for omission in group)
    uses = sorted(
        {use for omission in group for use in omission.referenced_from}, key=lambda use: (use[0], use[1] or 0)
    )
    yield f"{_omission_head(first)} {len(group)} of {first.path}: {names}"
    yield f"          used in {_uses(uses)}; {_dropped_because(first)}; --pin '{first.path}:LINE' keeps one"


def _omission_head(omission: Omission) -> str:
    return f"  {_MARKS[omission.severity]} {omission.state.value:<9}"


def _uses(places: Sequence[tuple[str, int | None]]) -> str:
    """The first places; a file is named once."""
    said: list[str] = []
    before: str | None = None
    for path, line in places[:_USES_SHOWN]:
        said.append(f"{'' if path == before else path}:{line}" if line else path)
        before = path
    more = len(places) - _USES_SHOWN
    return ", ".join(said) + (f" and {more} more" if more > 0 else "")


def _dropped_because(omission: Omission) -> str:
    return "outside the window" if omission.action is OmissionAction.NOT_PACKED else "no room in the budget"


def _findings(report: RunReport) -> Iterator[str]:
    for finding in report.findings:
        line = "" if finding.line is None else f":{finding.line}"
        place = f"{finding.path}{line} " if finding.path else ""
        code = "" if finding.code == finding.severity else f"{finding.code}: "
        yield f"  {_MARKS[finding.severity]} {code}{place}{finding.message}"


def _skipped(report: RunReport) -> Iterator[str]:
    if report.skipped:
        yield f"skipped {len(report.skipped)} file{'s' if len(report.skipped) > 1 else ''}:"
        for skipped in report.skipped[:5]:
            yield f"  {skipped.path}: {skipped.reason}"
        if len(report.skipped) > 5:
            yield f"  and {len(report.skipped) - 5} more (--format json lists them all)"


def _timings(report: RunReport) -> str:
    loads = [(name, s) for name, s in report.timings.items() if name.startswith("load")]
    stages = [(name, s) for name, s in report.timings.items() if not name.startswith("load")]
    said = "seconds: " + ", ".join(f"{name} {seconds:.2f}" for name, seconds in stages)
    if loads:
        said += "; loading: " + ", ".join(f"{name.removeprefix('load_')} {seconds:.2f}" for name, seconds in loads)
    return said
