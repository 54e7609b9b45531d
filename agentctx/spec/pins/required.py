"""Tier 1: whole definitions that an edit can't do without. One small pure function per rule.

A group's core is what is left of it where the budget can't hold the whole (the report marks it `reduced`).
`distance` is 0 for what is to be edited; tests and frames count up in the order of their importance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agentctx.prompt import Definition, Pin, PinReason, PromptUnit, Section
from agentctx.source import Resolution, Role, SymbolKind, UnitKind
from agentctx.spec.pins.view import Rule, View

# What test frameworks run around a test without its naming it: unittest, pytest, nose; PHPUnit and JUnit 3; minitest;
# testify; Go.
SETUP_METHODS = frozenset(
    {"setUp", "setUpClass", "asyncSetUp", "setUpTestData", "setup_method", "setup_class", "tearDown", "teardown_method"}
    | {"setUpBeforeClass", "setup", "teardown", "SetupTest", "SetupSuite", "TearDownTest", "TestMain"}
)
# JUnit, TestNG and kotlin.test; NUnit, MSTest.
_SETUP_MARK = re.compile(rb"@(?:Before|After)\w*|\[(?:OneTime)?(?:SetUp|TearDown|TestInitialize|TestCleanup)\]")
WHOLE_SCOPES = (SymbolKind.FUNCTION, SymbolKind.METHOD)  # a frame or a caller in these is kept whole


def target(view: View) -> Iterator[Pin]:
    """The definitions to edit. Core: the header, and the lines in the traceback.

    Guessed targets come best guess first, so the later ones count as farther away.
    """
    guessed = view.facts.targets_guessed
    for place, symbol in enumerate(view.facts.targets):
        definition = view.index.definition(symbol)
        if definition is not None:
            lines, distance = _framed(view, definition), place if guessed else 0
            yield from _whole(view, PinReason.TARGET, definition, lines, guessed=guessed, distance=distance)


def user(view: View) -> Iterator[Pin]:
    """What the user pinned: one group per definition."""
    groups: dict[tuple[str, str], list[int]] = {}
    for unit in sorted(view.facts.user_pins):
        found = view.document.units[unit]
        groups.setdefault((found.path or found.section, found.symbol or ""), []).append(unit)
    for (path, symbol), units in groups.items():
        definition = view.index.definition(symbol)
        header = definition.header if definition is not None else None
        core = view.index.closure((header,)) if header in units and header is not None else ()
        yield Pin(PinReason.USER, view.index.closure(units), symbol or path, core=core)


def log_evidence(view: View) -> Iterator[Pin]:
    """Error lines and assertion diffs: one group per unit, so that a very long log loses its last ones only."""
    for unit in sorted(view.facts.error_units):
        yield Pin(PinReason.LOG_EVIDENCE, view.index.closure((unit,)), Section.LOG, distance=1)


def failing_test(view: View) -> Iterator[Pin]:
    """Failing tests, then the fixtures and set-up methods that they use.

    Core of a test: the header and the failing lines, or the last statements where the log names no line.
    """
    for place, symbol in enumerate(view.facts.failing_tests):
        definition = view.index.definition(symbol)
        if definition is not None and definition.units:
            lines = _framed(view, definition) or _last_statements(view, definition)
            yield from _whole(view, PinReason.FAILING_TEST, definition, lines, distance=1 + place)
    after = 1 + len(view.facts.failing_tests)
    for unit in view.facts.test_units:
        subject = view.document.units[unit].path or view.document.units[unit].section
        yield Pin(PinReason.FAILING_TEST, view.index.closure((unit,)), subject, distance=after)
    for symbol in _helpers(view):
        definition = view.index.definition(symbol)
        if definition is not None:
            yield from _whole(view, PinReason.FAILING_TEST, definition, (), distance=after)


def frame(view: View) -> Iterator[Pin]:
    """Functions in the traceback, deepest first; at module or class level only the lines themselves."""
    covered: set[int] = set()
    for place, symbol in enumerate(view.facts.frames):
        definition = view.index.definition(symbol)
        if definition is None or definition.kind not in WHOLE_SCOPES:
            continue
        covered.update(definition.units)
        if symbol not in view.facts.failing_tests:
            yield from _whole(view, PinReason.FRAME, definition, _framed(view, definition), distance=1 + place)
    for unit in sorted(set(view.facts.frame_units) - covered):
        subject = view.document.units[unit].path or view.document.units[unit].section
        yield Pin(PinReason.FRAME, view.index.closure((unit,)), subject, distance=1 + len(view.facts.frames))


def caller(view: View) -> Iterator[Pin]:
    """Direct callers of a target or of something inside it. Core: the header and the statements that call.

    Of a test that calls a target without failing the core is all that is pinned: popular functions have hundreds.
    """
    targets = view.index.nested(view.facts.targets)
    inside = frozenset((*targets, *view.facts.failing_tests, *_helpers(view)))
    calls: dict[str | int, list[int]] = {}
    for symbol in targets:
        for link in view.index.incoming.get(symbol, ()):
            unit = view.document.units[link.unit]
            if link.role is Role.CALL and unit.symbol not in inside and unit.path is not None:
                calls.setdefault(_scope(view, unit), []).append(link.unit)
    for scope, units in sorted(calls.items(), key=lambda call: min(call[1])):
        definition = view.index.definition(scope) if isinstance(scope, str) else None
        if definition is None:
            subject = view.document.units[units[0]].path or ""
            yield Pin(PinReason.CALLER, view.index.closure(units), subject, distance=1)
        else:
            yield from _caller(view, definition, units)


def _caller(view: View, definition: Definition, calls: list[int]) -> Iterator[Pin]:
    [pin] = _whole(view, PinReason.CALLER, definition, calls, distance=1)
    is_test = definition.is_test or view.document.units[calls[0]].section is Section.TESTS
    yield Pin(pin.reason, pin.core, pin.subject, distance=1) if is_test else pin


def _scope(view: View, unit: PromptUnit) -> str | int:
    """The function around a call; the unit itself where there is none."""
    definition = view.index.definition(unit.symbol or "")
    has_body = definition is not None and definition.kind in WHOLE_SCOPES and definition.header is not None
    return definition.symbol if definition is not None and has_body else unit.index


def _whole(
    view: View,
    reason: PinReason,
    definition: Definition,
    lines: Iterable[int],
    *,
    guessed: bool = False,
    distance: int = 0,
) -> Iterator[Pin]:
    """All units of a definition; the core is its header and `lines`."""
    if definition.units:
        header = () if definition.header is None else (definition.header,)
        core = view.index.closure((*header, *lines))
        units = view.index.closure((*definition.units, *core))
        yield Pin(reason, units, definition.symbol, core, guessed=guessed, distance=distance)


def _framed(view: View, definition: Definition) -> tuple[int, ...]:
    return tuple(sorted(set(definition.units).intersection(view.facts.frame_units)))


def _last_statements(view: View, definition: Definition) -> tuple[int, ...]:
    kinds = (UnitKind.BODY, UnitKind.BLOCK, UnitKind.FIELDS)
    return tuple(unit for unit in definition.units if view.document.units[unit].kind in kinds)[-1:]


def _helpers(view: View) -> tuple[str, ...]:
    """Fixtures that the facts name, those that the tests' links name, and set-up methods beside the tests."""
    found = set(view.facts.fixtures)
    todo = [*view.facts.failing_tests, *view.facts.fixtures]
    seen: set[str] = set()
    while todo:
        symbol = todo.pop()
        definition = view.index.definition(symbol)
        if definition is None or symbol in seen:
            continue
        seen.add(symbol)
        new = set(_fixtures_of(view, definition)) | set(_setup_of(view, definition))
        found |= new
        todo.extend(sorted(new))
    return tuple(sorted(found - set(view.facts.failing_tests)))


def _fixtures_of(view: View, definition: Definition) -> Iterator[str]:
    for unit in definition.units:
        for link in view.index.links[unit]:
            if link.role is Role.FIXTURE and link.state is Resolution.RESOLVED:
                yield from link.targets


def _setup_of(view: View, definition: Definition) -> Iterator[str]:
    siblings = view.index.members.get(definition.parent, ()) if definition.parent is not None else ()
    for symbol in siblings:
        found = view.document.definitions[symbol]
        marked = found.header is not None and _SETUP_MARK.search(view.document.unit_text(found.header))
        if found.name in SETUP_METHODS or marked:
            yield symbol


RULES = (
    Rule(PinReason.TARGET, target),
    Rule(PinReason.USER, user),
    Rule(PinReason.LOG_EVIDENCE, log_evidence),
    Rule(PinReason.FAILING_TEST, failing_test),
    Rule(PinReason.FRAME, frame),
    Rule(PinReason.CALLER, caller),
)
