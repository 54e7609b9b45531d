"""Every pin rule on a small prompt in which it, and nothing like it, applies."""

from __future__ import annotations

import pytest

from agentctx.prompt import Pin, PinReason, PromptDocument, Section
from agentctx.source import Resolution, Role, SymbolKind, UnitKind
from agentctx.spec.pins import RULES, collect
from tests.unit.spec.builders import Builder, by_bytes


def pins_of(document: PromptDocument, reason: PinReason) -> list[Pin]:
    return [pin for pin in collect(document, by_bytes(document)).pins if pin.reason is reason]


def subjects(document: PromptDocument, reason: PinReason) -> list[str]:
    return [pin.subject for pin in pins_of(document, reason)]


def test_there_is_a_rule_for_every_reason() -> None:
    assert {rule.reason for rule in RULES} == set(PinReason)


def test_tier_0() -> None:
    b = Builder()
    system = b.unit(b"You edit code.\n", section=Section.SYSTEM, kind=UnitKind.SCAFFOLD)
    tools = b.unit(b"# Tools\n<tools></tools>\n", section=Section.SYSTEM, kind=UnitKind.SCAFFOLD)
    code = b.define("a.py::f", b.file("a.py"))
    request = b.unit(b"Fix it.\n", UnitKind.REQUEST, section=Section.REQUEST)
    b.unit(100, UnitKind.REQUEST, section=Section.REQUEST)
    tail = b.unit(b"<|assistant|>\n", UnitKind.SCAFFOLD, section=Section.TAIL)
    document = b.build()
    assert [pin.units for pin in pins_of(document, PinReason.SYSTEM)] == [(system, tools)]
    assert [pin.units for pin in pins_of(document, PinReason.TOOLS)] == [(tools,)]
    assert [pin.units for pin in pins_of(document, PinReason.REQUEST)] == [(request, request + 1)]
    assert [pin.units for pin in pins_of(document, PinReason.TAIL)] == [(system, tools, request + 1, tail)]
    assert code.header not in {unit for pin in collect(document, by_bytes(document)).pins for unit in pin.units}


def test_the_tail_holds_the_last_64_tokens_and_no_more() -> None:
    b = Builder()
    for size in (10, 1, 63):
        b.unit(size, UnitKind.REQUEST, section=Section.REQUEST)
    [pin] = pins_of(b.build(), PinReason.TAIL)
    assert pin.units == (1, 2)


def test_target_with_its_class_and_nested_definitions() -> None:
    b = Builder()
    file = b.file("a.py")
    outer = b.define("a.py::C", file, kind=SymbolKind.CLASS, body=(9,))
    method = b.define("a.py::C.m", file, kind=SymbolKind.METHOD, parent="a.py::C", body=(30, 40))
    b.define("a.py::C.n", file, kind=SymbolKind.METHOD, parent="a.py::C")
    [pin] = pins_of(b.build(targets=("a.py::C.m",), targets_guessed=True), PinReason.TARGET)
    assert outer.header is not None
    assert method.header is not None
    assert pin == Pin(
        PinReason.TARGET,
        (file, outer.header, *method.units),
        "a.py::C.m",
        core=(file, outer.header, method.header),
        guessed=True,
    )


def test_a_reduced_target_keeps_the_lines_of_the_traceback() -> None:
    b = Builder()
    f = b.define("a.py::f", b.file("a.py"), body=(30, 40, 50))
    [pin] = pins_of(b.build(targets=("a.py::f",), frame_units=(f.units[2],)), PinReason.TARGET)
    assert pin.core == (0, f.units[0], f.units[2])


@pytest.mark.parametrize(("guessed", "distances"), [(False, [0, 0]), (True, [1, 0])])
def test_later_guesses_are_farther_away(guessed: bool, distances: list[int]) -> None:
    b = Builder()
    file = b.file("a.py")
    b.define("a.py::second", file)
    b.define("a.py::first", file)
    document = b.build(targets=("a.py::first", "a.py::second"), targets_guessed=guessed)
    assert [pin.distance for pin in pins_of(document, PinReason.TARGET)] == distances


def test_user_pins_are_one_group_per_definition() -> None:
    b = Builder()
    file = b.file("a.py")
    free = b.unit(10, UnitKind.STATEMENT, path="a.py", spine=(file,))
    f = b.define("a.py::f", file, body=(30,))
    g = b.define("a.py::g", file, body=(30, 30))
    document = b.build(user_pins=(free, *f.units, g.units[2]))
    assert [(pin.subject, pin.units, pin.core) for pin in pins_of(document, PinReason.USER)] == [
        ("a.py", (file, free), ()),
        ("a.py::f", (file, *f.units), (file, f.units[0])),
        ("a.py::g", (file, g.units[0], g.units[2]), ()),
    ]


def test_log_evidence_is_one_group_per_unit() -> None:
    b = Builder()
    units = [b.unit(10, UnitKind.LOG, section=Section.LOG) for _ in range(3)]
    b.frame(request=100)
    document = b.build(error_units=(units[0], units[2]))
    assert [pin.units for pin in pins_of(document, PinReason.LOG_EVIDENCE)] == [(units[0],), (units[2],)]


def failing() -> tuple[Builder, dict[str, tuple[int, ...]]]:
    b = Builder()
    file = b.file("test_a.py", section=Section.TESTS)
    b.define("test_a.py::box", file, is_fixture=True)
    b.define("test_a.py::T", file, kind=SymbolKind.CLASS, body=(), is_test=True)
    b.define("test_a.py::T.setUp", file, kind=SymbolKind.METHOD, parent="test_a.py::T")
    method = SymbolKind.METHOD
    t = b.define("test_a.py::T.test_x", file, kind=method, parent="test_a.py::T", body=(20, 20), is_test=True)
    b.define("test_a.py::T.test_y", file, kind=method, parent="test_a.py::T", is_test=True)
    b.define("test_a.py::room", file, is_fixture=True)
    b.link(t.units[0], "test_a.py::room", role=Role.FIXTURE)
    b.link(b.definitions["test_a.py::room"].units[0], "test_a.py::box", role=Role.FIXTURE)
    return b, {symbol: definition.units for symbol, definition in b.definitions.items()}


def test_failing_test_with_fixtures_and_set_up() -> None:
    b, units = failing()
    pins = pins_of(b.build(failing_tests=("test_a.py::T.test_x",)), PinReason.FAILING_TEST)
    assert {pin.subject for pin in pins} == {
        "test_a.py::T.test_x",
        "test_a.py::T.setUp",
        "test_a.py::room",
        "test_a.py::box",
    }
    [test] = [pin for pin in pins if pin.subject == "test_a.py::T.test_x"]
    spine = (0, units["test_a.py::T"][0])
    body = units["test_a.py::T.test_x"]
    assert test.units == (*spine, *body)
    assert test.core == (*spine, body[0], body[2])  # the last statements: the log names no line
    assert all(pin.distance > test.distance for pin in pins if pin is not test)


def test_a_reduced_test_keeps_the_failing_line() -> None:
    b, units = failing()
    body = units["test_a.py::T.test_x"]
    [test, *_] = [
        pin
        for pin in pins_of(
            b.build(failing_tests=("test_a.py::T.test_x",), frame_units=(body[1],)), PinReason.FAILING_TEST
        )
        if pin.subject.endswith("test_x")
    ]
    assert test.core == (0, units["test_a.py::T"][0], body[0], body[1])


def test_frames_deepest_first_and_lines_outside_of_functions() -> None:
    b = Builder()
    file = b.file("a.py")
    free = b.unit(10, UnitKind.STATEMENT, path="a.py", spine=(file,))
    f = b.define("a.py::f", file, body=(30, 40))
    g = b.define("a.py::g", file)
    document = b.build(frames=("a.py::g", "a.py::f"), frame_units=(free, f.units[2]))
    assert [(pin.subject, pin.units, pin.core, pin.distance) for pin in pins_of(document, PinReason.FRAME)] == [
        ("a.py", (file, free), (), 3),
        ("a.py::f", (file, *f.units), (file, f.units[0], f.units[2]), 2),
        ("a.py::g", (file, *g.units), (file, g.units[0]), 1),
    ]


def calls() -> Builder:
    b = Builder()
    file = b.file("a.py")
    b.define("a.py::target", file)
    b.link(b.define("a.py::calls", file, body=(30, 31, 32)).units[2], "a.py::target")
    b.link(b.define("a.py::names", file).units[1], "a.py::target", role=Role.NAME)
    maybe = b.define("a.py::maybe", file)
    b.link(maybe.units[1], "a.py::target", "a.py::other", state=Resolution.AMBIGUOUS)
    b.define("a.py::other", file)
    b.link(b.unit(10, UnitKind.STATEMENT, path="a.py", spine=(file,)), "a.py::target")
    tests = b.file("test_a.py", section=Section.TESTS)
    b.link(b.define("test_a.py::test_t", tests, body=(20, 21), is_test=True).units[1], "a.py::target")
    return b


def test_callers_whole_but_of_tests_only_the_call() -> None:
    b = calls()
    caller, test = b.definitions["a.py::calls"].units, b.definitions["test_a.py::test_t"].units
    pins = pins_of(b.build(targets=("a.py::target",)), PinReason.CALLER)
    free = next(unit.index for unit in b.units if unit.kind is UnitKind.STATEMENT)
    assert [(pin.subject, pin.units, pin.core) for pin in pins] == [
        ("a.py::calls", (0, *caller), (0, caller[0], caller[2])),
        ("a.py", (0, free), ()),
        ("test_a.py::test_t", (test[0] - 1, test[0], test[1]), ()),
    ]


def test_a_failing_test_is_no_caller() -> None:
    document = calls().build(targets=("a.py::target",), failing_tests=("test_a.py::test_t",))
    assert "test_a.py::test_t" not in subjects(document, PinReason.CALLER)


def test_a_fixture_of_a_failing_test_is_no_caller() -> None:
    b = calls()
    fixture = b.define("test_a.py::box", 0, is_fixture=True)
    b.link(fixture.units[1], "a.py::target")
    document = b.build(targets=("a.py::target",), fixtures=("test_a.py::box",))
    assert "test_a.py::box" not in subjects(document, PinReason.CALLER)
    assert "test_a.py::box" in subjects(document, PinReason.FAILING_TEST)


def test_callers_of_a_class_are_those_of_its_methods_too() -> None:
    b = Builder()
    file = b.file("a.py")
    b.define("a.py::C", file, kind=SymbolKind.CLASS, body=())
    inner = b.define("a.py::C.m", file, kind=SymbolKind.METHOD, parent="a.py::C")
    b.link(inner.units[1], "a.py::C")
    b.link(b.define("a.py::f", file).units[1], "a.py::C.m")
    assert subjects(b.build(targets=("a.py::C",)), PinReason.CALLER) == ["a.py::f"]


def users() -> Builder:
    """A target that uses one of everything; each used thing uses one more."""
    b = Builder()
    lib = b.file("lib.py")
    b.define("lib.py::LIMIT", lib, kind=SymbolKind.CONSTANT, body=())
    b.define("lib.py::Deep", lib, kind=SymbolKind.CLASS)
    b.define("lib.py::Root", lib, kind=SymbolKind.CLASS)
    b.define("lib.py::Base", lib, kind=SymbolKind.CLASS)
    b.define("lib.py::helper", lib)
    b.define("lib.py::second", lib)
    b.define("lib.py::Type", lib, kind=SymbolKind.CLASS)
    b.define("lib.py::Made", lib, kind=SymbolKind.CLASS)
    b.define("lib.py::Made.__init__", lib, kind=SymbolKind.METHOD, parent="lib.py::Made")
    b.define("lib.py::Made.size", lib, kind=SymbolKind.FIELD, parent="lib.py::Made", body=())
    main = b.file("main.py")
    via = b.unit(b"from lib import helper\n", UnitKind.IMPORT, path="main.py", spine=(main,))
    b.unit(b"from lib import second\n", UnitKind.IMPORT, path="main.py", spine=(main,))
    owner = b.define("main.py::Owner", main, kind=SymbolKind.CLASS, body=())
    target = b.define("main.py::Owner.run", main, kind=SymbolKind.METHOD, parent="main.py::Owner")
    header, body = target.units
    headers = {symbol: definition.units[0] for symbol, definition in b.definitions.items()}
    b.link(owner.units[0], "lib.py::Base", role=Role.BASE)
    b.link(headers["lib.py::Base"], "lib.py::Root", role=Role.BASE)
    b.link(header, "lib.py::Type", role=Role.TYPE)
    b.link(headers["lib.py::helper"], "lib.py::Deep", role=Role.TYPE)
    b.link(body, "lib.py::helper", via=via)
    b.link(b.definitions["lib.py::helper"].units[1], "lib.py::second")  # the body of a signature
    b.link(body, "lib.py::Made")
    b.link(body, "lib.py::LIMIT", role=Role.NAME)
    b.link(body, "lib.py::Made.size", role=Role.ATTRIBUTE)
    b.frame()
    return b


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (PinReason.CALLEE, ["lib.py::helper", "lib.py::Made", "lib.py::Made.__init__"]),
        (PinReason.TYPE, ["lib.py::Deep", "lib.py::Type"]),
        (PinReason.BASE, ["lib.py::Root", "lib.py::Base"]),
        (PinReason.CONSTANT, ["lib.py::LIMIT"]),
        (PinReason.FIELD, ["lib.py::Made.size"]),
        (PinReason.IMPORT, ["main.py"]),
    ],
)
def test_interfaces_that_the_target_uses(reason: PinReason, expected: list[str]) -> None:
    document = users().build(targets=("main.py::Owner.run",))
    pins = pins_of(document, reason)
    assert [pin.subject for pin in pins] == expected
    for pin in pins:
        definition = document.definitions.get(pin.subject)
        if definition is not None:
            assert definition.header in pin.units
            assert not set(definition.units[1:]) & set(pin.units) - {definition.header}


def test_distances_grow_with_the_hops() -> None:
    pins = collect(*(lambda d: (d, by_bytes(d)))(users().build(targets=("main.py::Owner.run",)))).pins
    distances = {(pin.reason.value, pin.subject): pin.distance for pin in pins}
    assert distances[("target", "main.py::Owner.run")] == 0
    assert distances[("callee", "lib.py::helper")] == 1
    assert distances[("type", "lib.py::Deep")] == 2
    assert distances[("base", "lib.py::Root")] == 2


def test_override_and_siblings() -> None:
    b = Builder()
    file = b.file("a.py")
    for name in ("Base", "One", "Two", "Sub"):
        b.define(f"a.py::{name}", file, kind=SymbolKind.CLASS, body=())
        b.define(f"a.py::{name}.go", file, kind=SymbolKind.METHOD, parent=f"a.py::{name}")
        b.define(f"a.py::{name}.no", file, kind=SymbolKind.METHOD, parent=f"a.py::{name}")
    b.change("a.py::One.go", overrides=("a.py::Base.go",), overridden_by=("a.py::Sub.go",))
    b.change("a.py::Base.go", overridden_by=("a.py::One.go", "a.py::Sub.go", "a.py::Two.go"))
    b.frame()
    pins = pins_of(b.build(targets=("a.py::One.go",)), PinReason.OVERRIDE)
    assert [(pin.subject, pin.distance) for pin in pins] == [
        ("a.py::Base.go", 1),
        ("a.py::Two.go", 2),
        ("a.py::Sub.go", 1),
    ]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"class P(Protocol):\n", ["a.py::P.must", "a.py::P.can"]),
        (b"class P(ABC):\n", ["a.py::P.must"]),
        (b"public interface P {\n", ["a.py::P.must", "a.py::P.can"]),
        (b"pub trait P {\n", ["a.py::P.must", "a.py::P.can"]),
        (b"abstract class P {\n", ["a.py::P.must"]),
    ],
)
def test_implements(header: bytes, expected: list[str]) -> None:
    b = Builder()
    file = b.file("a.py")
    b.define("a.py::P", file, kind=SymbolKind.CLASS, header=header, body=())
    b.define("a.py::P.must", file, kind=SymbolKind.METHOD, parent="a.py::P", header=b"@abstractmethod\ndef must():\n")
    b.define("a.py::P.can", file, kind=SymbolKind.METHOD, parent="a.py::P", header=b"def can():\n")
    middle = b.define("a.py::M", file, kind=SymbolKind.CLASS, body=())
    b.link(middle.units[0], "a.py::P", role=Role.BASE)
    owner = b.define("a.py::C", file, kind=SymbolKind.CLASS, body=())
    b.link(owner.units[0], "a.py::M", role=Role.BASE)
    b.define("a.py::C.must", file, kind=SymbolKind.METHOD, parent="a.py::C")
    b.frame()
    assert subjects(b.build(targets=("a.py::C.must",)), PinReason.IMPLEMENTS) == expected


@pytest.mark.parametrize(
    ("header", "n"),
    [
        (b"virtual void draw() = 0;\n", 1),
        (b"abstract fun draw()\n", 1),
        (b"public abstract void draw();\n", 1),
        (b"virtual void draw();\n", 0),
        (b"int draw(int a = 0);\n", 0),
    ],
)
def test_abstract_in_other_languages(header: bytes, n: int) -> None:
    b = Builder()
    file = b.file("a.cc")
    b.define("a.cc::P", file, kind=SymbolKind.CLASS, header=b"class P {\n", body=())
    b.define("a.cc::P.draw", file, kind=SymbolKind.METHOD, parent="a.cc::P", header=header)
    owner = b.define("a.cc::C", file, kind=SymbolKind.CLASS, body=())
    b.link(owner.units[0], "a.cc::P", role=Role.BASE)
    b.define("a.cc::C.draw", file, kind=SymbolKind.METHOD, parent="a.cc::C")
    b.frame()
    assert subjects(b.build(targets=("a.cc::C.draw",)), PinReason.IMPLEMENTS) == ["a.cc::P.draw"] * n


@pytest.mark.parametrize("name", ["constructor", "__construct", "initialize", "Made"])
def test_a_class_is_called_through_its_constructor(name: str) -> None:
    b = Builder()
    lib = b.file("lib.x")
    b.define("lib.x::Made", lib, kind=SymbolKind.CLASS)
    b.define(f"lib.x::Made.{name}", lib, kind=SymbolKind.METHOD, parent="lib.x::Made")
    b.define("lib.x::Made.other", lib, kind=SymbolKind.METHOD, parent="lib.x::Made")
    target = b.define("main.x::run", b.file("main.x"))
    b.link(target.units[1], "lib.x::Made")
    b.frame()
    found = subjects(b.build(targets=("main.x::run",)), PinReason.CALLEE)
    assert found == ["lib.x::Made", f"lib.x::Made.{name}"]


@pytest.mark.parametrize(
    ("header", "n"),
    [
        (b"@BeforeEach\nvoid prepare() {\n", 1),
        (b"[SetUp]\npublic void Prepare() {\n", 1),
        (b"@Test\nvoid prepare() {\n", 0),
    ],
)
def test_marked_set_up_comes_with_the_test(header: bytes, n: int) -> None:
    b = Builder()
    file = b.file("T.java", section=Section.TESTS)
    b.define("T.java::T", file, kind=SymbolKind.CLASS, body=(), is_test=True)
    b.define("T.java::T.prepare", file, kind=SymbolKind.METHOD, parent="T.java::T", header=header)
    b.define("T.java::T.works", file, kind=SymbolKind.METHOD, parent="T.java::T", is_test=True)
    found = subjects(b.build(failing_tests=("T.java::T.works",)), PinReason.FAILING_TEST)
    assert sorted(found) == ["T.java::T.prepare"] * n + ["T.java::T.works"]


@pytest.mark.parametrize("stem", ["index", "mod", "lib"])
def test_doors_of_other_languages(stem: str) -> None:
    b = Builder()
    b.define("pkg/inner.ts::thing", b.file("pkg/inner.ts"))
    init = b.file(f"pkg/{stem}.ts")
    door = b.unit(b"export { thing } from './inner'\n", UnitKind.IMPORT, path=f"pkg/{stem}.ts", spine=(init,))
    b.link(door, "pkg/inner.ts::thing", role=Role.IMPORT)
    main = b.file("main.ts")
    via = b.unit(b"import { thing } from './pkg'\n", UnitKind.IMPORT, path="main.ts", spine=(main,))
    target = b.define("main.ts::run", main)
    b.link(target.units[1], "pkg/inner.ts::thing", via=via)
    assert subjects(b.build(targets=("main.ts::run",)), PinReason.RE_EXPORT) == ["pkg/inner.ts::thing"]


@pytest.mark.parametrize(
    ("statement", "n_doors"),
    [(b"from pkg import thing\n", 1), (b"import pkg\n", 1), (b"from pkg.inner import thing\n", 0)],
)
def test_re_export(statement: bytes, n_doors: int) -> None:
    b = Builder()
    b.define("pkg/inner.py::thing", b.file("pkg/inner.py"))
    init = b.file("pkg/__init__.py")
    door = b.unit(b"from .inner import thing\n", UnitKind.IMPORT, path="pkg/__init__.py", spine=(init,))
    b.link(door, "pkg/inner.py::thing", role=Role.IMPORT)
    main = b.file("main.py")
    via = b.unit(statement, UnitKind.IMPORT, path="main.py", spine=(main,))
    target = b.define("main.py::run", main)
    b.link(target.units[1], "pkg/inner.py::thing", via=via)
    pins = pins_of(b.build(targets=("main.py::run",)), PinReason.RE_EXPORT)
    assert [(pin.subject, pin.units) for pin in pins] == [("pkg/inner.py::thing", (init, door))] * n_doors


@pytest.mark.parametrize(
    ("request_text", "expected"),
    [
        (b"raise the timeout in settings.toml\n", [1]),
        (b"settings.toml is wrong\n", [0]),
        (b"the timeout is wrong\n", []),
        (b"mysettings.toml\n", []),
    ],
)
def test_config_named_in_the_request(request_text: bytes, expected: list[int]) -> None:
    b = Builder()
    file = b.file("conf/settings.toml")
    sections = [
        b.unit(text, UnitKind.TEXT, path="conf/settings.toml", spine=(file,))
        for text in (b"[server]\nport = 1\n", b"timeout = 3\n")
    ]
    b.unit(request_text, UnitKind.REQUEST, section=Section.REQUEST)
    b.unit(64, UnitKind.SCAFFOLD, section=Section.TAIL)
    found = [pin.units for pin in pins_of(b.build(), PinReason.CONFIG)]
    assert found == [(file, sections[place]) for place in expected]


def test_what_is_not_packed_is_said() -> None:
    b = Builder()
    b.absent("a.py::gone")
    pins = collect(*(lambda d: (d, by_bytes(d)))(b.build(targets=("a.py::gone",), failing_tests=("t.py::test_x",))))
    assert [(f.code, f.severity) for f in pins.findings] == [("not-packed", "warning")] * 2
    assert "target a.py::gone" in pins.findings[0].message
    assert "failing test t.py::test_x" in pins.findings[1].message


def test_several_that_are_not_packed_are_one_finding_with_all_their_names() -> None:
    b = Builder()
    b.frame()
    tests = ("t.py::test_x", "t.py::test_y", "u.py::test_z")
    pins = collect(*(lambda d: (d, by_bytes(d)))(b.build(failing_tests=tests)))
    [finding] = pins.findings
    assert finding.message == (
        "3 failing tests are not in the window; they can't be kept: t.py::test_x, t.py::test_y, u.py::test_z"
    )


def test_order_and_closure() -> None:
    document = users().build(targets=("main.py::Owner.run",))
    pins = collect(document, by_bytes(document)).pins
    place = {rule.reason: number for number, rule in enumerate(RULES)}
    keys = [(pin.tier, place[pin.reason], pin.units[0]) for pin in pins]
    assert keys == sorted(keys)
    for pin in pins:
        closed = {other for unit in pin.units for other in (unit, *document.units[unit].spine)}
        assert pin.units == tuple(sorted(closed))
        assert set(pin.core) <= set(pin.units)
