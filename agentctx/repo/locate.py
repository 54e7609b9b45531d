"""Task + evidence + graph -> what the task is about: failing tests, frames, targets. Pure.

A test, a focus or a pin that does not exist is a TaskError; a parameter that we can't tell is a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from agentctx.errors import TaskError
from agentctx.prompt import Evidence, FocusRef, Frame, Task, TestRef
from agentctx.repo.graph import find_symbols, symbol_at
from agentctx.repo.locate_tests import Touched, leaves, tests_of_path, touched_by
from agentctx.repo.match_tests import TestNames
from agentctx.repo.scan_folders import reason_above
from agentctx.source import RepoGraph, Skipped, Symbol, SymbolKind

DEFINITIONS = (SymbolKind.FUNCTION, SymbolKind.METHOD, SymbolKind.CLASS)
MAX_GUESSED = 3
MAX_FAILING = 500  # tests of a log that are looked up
LISTED = 8  # names that a hint lists


@dataclass(frozen=True, slots=True)
class Located:
    """Symbol ids, most telling first. `pinned` are (path, unit) of the user's pins."""

    failing_tests: tuple[str, ...] = ()
    fixtures: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()  # definitions in repository frames, deepest first, tests left out
    frame_lines: tuple[tuple[str, int], ...] = ()
    targets: tuple[str, ...] = ()  # from focus or frames; () = to be guessed from the ranking
    pinned: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    test_units: tuple[tuple[str, int], ...] = ()  # (path, unit): failing test code that no definition holds


def locate(
    task: Task,
    evidence: Evidence,
    graph: RepoGraph,
    skipped: Sequence[Skipped] = (),
    marked: Sequence[tuple[str, int]] = (),
) -> Located:
    """`evidence.changes` decide which tests a bare test path means. `skipped`: what the scan left out. `marked`: units
    that comments pin.

    Raises:
        TaskError: a test, focus or pin names what the repository doesn't have, or what is left out.
    """
    named = [*(ref.path for ref in task.tests), *(ref.path for ref in (*task.focus, *task.pins))]
    for path in named:
        reason = reason_above(path, skipped) if path not in graph.files else None
        if reason is not None:
            raise TaskError(f"'{path}' is left out of the index: {reason}", hint=_where(path, evidence, graph))
    notes: list[str] = []
    tests, test_units = _given_tests(task, evidence, graph, notes)
    if not task.tests:
        tests = _known_tests(evidence.failing, graph)
    failing = _distinct(tests)
    frames = [frame for frame in evidence.frames if frame.in_repo]
    if evidence.text and not frames:
        notes.append("the log has no frame inside the repository; ranking relies on names, tests and text")
    inner = _distinct(_frame_symbols(frames, graph))
    focused = {ref: focus_symbols(ref, graph) for ref in task.focus}
    notes += [f"{ref.text}: no definition is there to focus on" for ref, found in focused.items() if not found]
    focus = _distinct(symbol for found in focused.values() for symbol in found)
    return Located(
        failing_tests=failing,
        fixtures=_distinct(f for test in failing for f in graph.fixtures.get(test, ())),
        frames=inner,
        frame_lines=tuple(dict.fromkeys((frame.path, frame.line) for frame in frames)),
        targets=focus or inner[:1],
        pinned=tuple(dict.fromkeys((*(unit for ref in task.pins for unit in pin_units(ref, graph)), *marked))),
        notes=tuple(dict.fromkeys(notes)),
        test_units=tuple(test_units),
    )


def _distinct(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))


# ---------------------------------------------------------------- tests


def _known_tests(refs: Sequence[TestRef], graph: RepoGraph) -> list[str]:
    """A log may name tests of another checkout: what isn't here is left out."""
    names = TestNames(graph) if refs else None
    return [id for ref in refs[:MAX_FAILING] for id in names.find(ref)] if names is not None else []


def _given_tests(
    task: Task, evidence: Evidence, graph: RepoGraph, notes: list[str]
) -> tuple[list[str], list[tuple[str, int]]]:
    """Tests that were named, then those that bare paths stand for: changed ones first, largest match first."""
    for ref in task.tests:
        if ref.path not in graph.files:
            raise TaskError(f"test file '{ref.path}' is not in the repository", hint=_where(ref.path, evidence, graph))
    named = [_named_test(ref, graph, notes) for ref in task.tests if ref.names]
    touched = touched_by(evidence.changes)
    paths = dict.fromkeys(ref.path for ref in task.tests if not ref.names)
    found = [tests_of_path(path, graph, touched.get(path, Touched()), evidence, task.request) for path in paths]
    notes += [f"{one.path}: no test was found in it" for one in found if not (one.tests or one.units)]
    found.sort(key=lambda one: not one.changed)
    weighed = [(not one.changed, -weight, test) for one in found for test, weight in one.tests]
    weighed.sort(key=lambda test: test[:2])
    units = [(one.path, unit) for one in found for unit in one.units]
    return [*named, *(test for _, _, test in weighed)], units


def _named_test(ref: TestRef, graph: RepoGraph, notes: list[str]) -> str:
    found = next(iter(TestNames(graph).find_in_file(ref)), None)
    if found is None:
        names = sorted({s.qualname.replace(".", "::") for s in leaves(graph.files[ref.path])})
        hint = _nearest("tests", "::".join(ref.names), names)
        raise TaskError(f"no test '{'::'.join(ref.names)}' in {ref.path}", hint=hint)
    if ref.param is not None and not _has_parameters(graph.symbols[found]):
        notes.append(f"'{ref.id}': the test is not parametrized there; the whole function stands for it")
    return found


def _where(path: str, evidence: Evidence, graph: RepoGraph) -> str | None:
    """What became of a test file that isn't there, as far as the change says it; else files of its name."""
    for change in evidence.changes:
        if change.status == "renamed" and change.old_path == path:
            return f"it was renamed to {change.path}"
        if change.status == "deleted" and change.path == path:
            return "the change deletes it"
    return _near_path(path, graph)


def _has_parameters(symbol: Symbol) -> bool:
    """Whether a parameter in brackets can be meant: we can't evaluate the values, the decorator must do."""
    return any(name.endswith(("parametrize", "given")) for name in symbol.decorators) or bool(symbol.parent)


def _near_path(path: str, graph: RepoGraph) -> str | None:
    name = path.rsplit("/", 1)[-1]
    near = sorted(other for other in graph.files if other.rsplit("/", 1)[-1] == name)
    return f"did you mean {' or '.join(near[:3])}?" if near else None


# ---------------------------------------------------------------- frames, focus, pins


def _frame_symbols(frames: Sequence[Frame], graph: RepoGraph) -> list[str]:
    """Definitions that the frames stand in, deepest frame first; code of tests is not a target."""
    found = []
    for frame in reversed(frames):
        if frame.path not in graph.files or graph.files[frame.path].is_test:
            continue
        symbol = symbol_at(graph, frame.path, frame.line)
        if symbol is not None and symbol.kind in DEFINITIONS:
            found.append(symbol.id)
    return found


def focus_symbols(ref: FocusRef, graph: RepoGraph) -> list[str]:
    """Definitions that a focus names. A whole file stands for its top-level definitions.

    Raises:
        TaskError: there is no such file, line or symbol.
    """
    file = graph.files.get(ref.path)
    if file is None:
        raise TaskError(f"'{ref.path}' is not an indexed file of the repository", hint=_near_path(ref.path, graph))
    if ref.symbol is not None:
        found = [s.id for s in find_symbols(graph, ref.symbol) if s.path == ref.path]
        if not found:
            raise TaskError(
                f"no definition '{ref.symbol}' in {ref.path}", hint=_names_there(ref.symbol, ref.path, graph)
            )
        return found
    if ref.line is not None:
        _check_line(ref, graph)
        symbol = symbol_at(graph, ref.path, ref.line)
        return [symbol.id] if symbol is not None else []
    return [s.id for s in file.symbols if s.parent is None and s.kind in DEFINITIONS]


def _check_line(ref: FocusRef, graph: RepoGraph) -> None:
    units = graph.files[ref.path].units
    last = units[-1].lines.end if units else 0
    if ref.line is not None and not 1 <= ref.line <= last:
        raise TaskError(f"{ref.path} has {last} lines, there is no line {ref.line}")


def _names_there(wanted: str, path: str, graph: RepoGraph) -> str | None:
    names = [s.qualname for s in graph.files[path].symbols if s.kind in DEFINITIONS]
    return _nearest("definitions", wanted, names)


def _nearest(what: str, wanted: str, names: Sequence[str]) -> str | None:
    """A hint: the names that are there; of many those most like the wanted one, else the first."""
    near = get_close_matches(wanted, dict.fromkeys(names), n=3) if len(names) > LISTED else []
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"{what} there: {', '.join(names[:LISTED])}{' ...' if len(names) > LISTED else ''}" if names else None


def pin_units(ref: FocusRef, graph: RepoGraph) -> list[tuple[str, int]]:
    """(path, unit) of what a user pin names: a file's units, a definition's, or the one with the line."""
    if ref.path not in graph.files:
        raise TaskError(f"pin '{ref.text}': not an indexed file", hint=_near_path(ref.path, graph))
    units = graph.files[ref.path].units
    if ref.symbol is not None:
        spans = [graph.symbols[symbol].lines for symbol in focus_symbols(ref, graph)]
        return [(ref.path, u.index) for u in units if any(span.overlaps(u.lines) for span in spans)]
    if ref.line is not None:
        _check_line(ref, graph)
        return [(ref.path, u.index) for u in units if u.lines.holds(ref.line)]
    return [(ref.path, unit.index) for unit in units]
