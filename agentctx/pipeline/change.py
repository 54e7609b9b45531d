"""A change (staged, or since a revision) -> calls of altered or removed definitions that the change leaves alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentctx import vcs
from agentctx.config import RunOptions
from agentctx.diff import Ranges
from agentctx.errors import RepoError
from agentctx.pipeline.changes import since_base
from agentctx.pipeline.index import Index, build_index
from agentctx.pipeline.services import Clock, Services
from agentctx.prompt import Finding, Task
from agentctx.repo.signatures import severity_of_change
from agentctx.report import BudgetRow, Decision, RunReport
from agentctx.source import Link, RepoGraph, Resolution, Role, Symbol, SymbolKind

_USES = (Role.CALL, Role.NAME, Role.ATTRIBUTE, Role.DECORATOR, Role.IMPORT, Role.BASE)
Use = tuple[str, str | None, str]  # path, scope, name
_KINDS = (SymbolKind.FUNCTION, SymbolKind.METHOD, SymbolKind.CLASS)


@dataclass(frozen=True, slots=True)
class _Sides:
    """The repository before and after the change, and the lines that it touches, by new path."""

    old: RepoGraph
    new: RepoGraph
    changed: frozenset[str]
    ranges: Mapping[str, Ranges]
    now: Mapping[Use, list[Link]]  # the links after the change, by use
    led: Mapping[str, list[Link]]  # the links before the change, by target
    leads: Mapping[str, list[Link]]  # ... and after it


def check_change(
    root: Path, task: Task, options: RunOptions, services: Services, *, since: str | None = None
) -> RunReport:
    """Findings `signature-changed` and `definition-removed`, one per call that is not in the change.

    With `since`, the work tree against that revision; without, the index against HEAD.

    Raises:
        RepoError, UsageError: not a git repository, or an unknown revision.
    """
    if vcs.top_level(root) is None:
        raise RepoError(f"{root} is not in a git repository; there is no change to check")
    clock = Clock()
    notes: list[str] = []
    since = since_base(root, since, notes) if since is not None else None
    with clock.stage("change"):
        changed = _changed(root, since)
    after = build_index(root, services, clock, _contents(root, changed, since, new=True), cached=options.cache)
    before = build_index(root, services, clock, _contents(root, changed, since, new=False), cached=options.cache)
    ranges = vcs.staged_lines(root) if since is None else vcs.changed_lines(root, since)
    now: dict[Use, list[Link]] = {}
    for link in after.graph.links:
        now.setdefault(_use(link), []).append(link)
    led, leads = _by_target(before.graph), _by_target(after.graph)
    sides = _Sides(before.graph, after.graph, changed, ranges, now, led, leads)
    with clock.stage("check"):
        findings = tuple(sorted(set(_findings(sides)), key=lambda f: (f.path or "", f.line or 0, f.message)))
    return _report(after, task, findings, clock, notes)


def _by_target(graph: RepoGraph) -> dict[str, list[Link]]:
    found: dict[str, list[Link]] = {}
    for link in graph.links:
        for target in link.targets:
            found.setdefault(target, []).append(link)
    return found


def _changed(root: Path, since: str | None) -> frozenset[str]:
    """Paths that the change touches, deleted ones too."""
    return frozenset(vcs.changed_paths(root, staged=since is None, since=since, deleted=True))


def _contents(root: Path, changed: frozenset[str], since: str | None, *, new: bool) -> dict[str, bytes]:
    """The contents to see instead of the work tree's, so that each side is whole.

    Staged: the new side is the index (also for files with further unstaged edits), the old side is HEAD.
    """
    if since is None:
        paths, revision = changed | frozenset(vcs.unstaged_paths(root)), "" if new else "HEAD"
    elif new:
        return {}
    else:
        paths, revision = changed, since
    return {path: data for path in sorted(paths) if (data := vcs.content(root, revision, path)) is not None}


# ---------------------------------------------------------------- findings


def _findings(sides: _Sides) -> Iterator[Finding]:
    for symbol in sides.old.symbols.values():
        if symbol.path not in sides.changed or symbol.kind not in _KINDS or symbol.is_test:
            continue
        now = sides.new.symbols.get(symbol.id)
        if now is None:
            yield from _removed(symbol, sides)
            continue
        severity = _severity(symbol, now)
        if severity is not None:
            yield from _calls(symbol, now, severity, sides)


def _severity(before: Symbol, after: Symbol) -> str | None:
    if before.kind is SymbolKind.CLASS:
        return None  # its __init__ is a method of its own
    return severity_of_change(before.signature, after.signature)


def _calls(before: Symbol, after: Symbol, severity: str, sides: _Sides) -> Iterator[Finding]:
    for link in sides.leads.get(after.id, ()):
        reference = link.reference
        if reference.role is not Role.CALL or _touched(link, sides.ranges):
            continue
        sure = link.state is Resolution.RESOLVED
        verb = "calls" if sure else "may call"
        yield Finding(
            "signature-changed",
            severity if sure else "note",
            f"{_who(link)} {verb} {after.qualname}, whose signature the change alters "
            f"({before.signature} -> {after.signature}, {after.path}:{after.lines.start}); "
            "the call is not in the change",
            reference.path,
            reference.line,
        )


def _removed(symbol: Symbol, sides: _Sides) -> Iterator[Finding]:
    """Uses of a definition that is gone, as far as it isn't exported from where it was."""
    for link in sides.led.get(symbol.id, ()):
        reference = link.reference
        if link.state is not Resolution.RESOLVED or reference.role not in _USES:
            continue
        for line in _left(link, sides):
            yield Finding(
                "definition-removed",
                "error",
                f"{_who(link)} uses {symbol.qualname}, which the change removes from {symbol.path}",
                reference.path,
                line,
            )


def _left(link: Link, sides: _Sides) -> Iterator[int]:
    """Lines of a use that leads nowhere after the change."""
    reference = link.reference
    now = sides.now.get(_use(link), ())
    if reference.path in sides.changed:
        yield from (new.reference.line for new in now if new.state is Resolution.UNKNOWN)
    elif not any(new.targets for new in now if new.reference.line == reference.line):
        yield reference.line


def _use(link: Link) -> Use:
    reference = link.reference
    return reference.path, reference.scope, reference.name


def _who(link: Link) -> str:
    scope = link.reference.scope
    return scope.partition("::")[2] or scope if scope else link.reference.path


def _touched(link: Link, ranges: Mapping[str, Ranges]) -> bool:
    return any(a <= link.reference.line <= b for a, b in ranges.get(link.reference.path, ()))


def _report(index: Index, task: Task, findings: tuple[Finding, ...], clock: Clock, said: Sequence[str]) -> RunReport:
    notes = tuple(Finding("note", "note", note) for note in (*index.notes, *said))
    return RunReport(
        command="check",
        repo=index.row,
        task=task,
        budget=BudgetRow(0, 0, 0, 0, "none"),
        decision=Decision("text", "a change was checked; nothing was packed"),
        findings=findings + notes,
        skipped=index.skipped,
        timings=dict(clock.seconds),
        cache={**index.cache, "drafter_prefix_tokens": 0, "selection": "miss"},
    )
