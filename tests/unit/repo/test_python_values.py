"""Values of Python expressions: depth, order of questions, damaged texts; healed brackets; names of tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctx.repo.name_words import Named, words
from agentctx.repo.python_heal import healed
from agentctx.repo.resolve_python import PythonResolver
from agentctx.repo.value_text import parse_annotation, parse_value
from agentctx.source import Resolution, Role
from tests.unit.repo.test_graph_cases import check_invariants, graph_of, syntax

ROOT = Path(__file__).parents[3]
SOURCES = sorted((ROOT / "agentctx/repo").glob("*.py"))


def test_long_chains_of_values_end() -> None:
    n = 1_500
    calls = "".join(f"def f{i}(): return f{i + 1}()\n" for i in range(n)) + f"def f{n}(): return A()\n"
    locals_ = (
        "def g():\n    x0 = A()\n" + "".join(f"    x{i} = x{i - 1}\n" for i in range(1, n)) + f"    x{n - 1}.m()\n"
    )
    nested = f"h = {'(' * 300}A(){')' * 300}\nh.m()\ni = {' or '.join(['A()'] * n)}\ni.m()\n"
    dots = f"def j(a: A): a{'.me()' * n}.m()\n"
    text = (
        "class A:\n    def m(self): pass\n    def me(self) -> 'A': ...\n"
        + calls
        + "f0().m()\n"
        + locals_
        + nested
        + dots
    )
    graph = graph_of({"m.py": text})
    check_invariants(graph)
    last = {link.reference.line: link for link in graph.links if link.reference.name == "m"}
    lines = text.splitlines()
    assert last[lines.index("h.m()") + 1].targets == ("m.py::A.m",)


@pytest.mark.parametrize(
    "text",
    [
        "def a(): return b()\ndef b(): return a()\na().x()\n",
        "def a(x):\n    x = x.y\n    x = x or x\n    while x: x = x.z\n    x.w()\n",
        "class A:\n    def __init__(self): self.a = self.b\n    def m(self): self.b = self.a; self.a.x(); self.c.x()\n",
        "class A:\n    def __getattr__(self, n): return self.n\n    def __iter__(self): return self\n"
        "for i in A(): i.x()\n",
        "T = dict[str, 'T']\nx: T\nx['a']['b'].c()\nU = U | None\ny: U\ny.z\n",
        "@a\ndef a(): return a\na.b\n@b.c\ndef b(): pass\nb.d\n",
    ],
)
def test_values_that_need_themselves(text: str) -> None:
    check_invariants(graph_of({"m.py": text}))


def test_no_answer_depends_on_the_question_before() -> None:
    files = [syntax(path.name, path.read_text("utf-8")) for path in SOURCES[:40]]
    forwards, backwards = PythonResolver(files), PythonResolver(files)
    expected = {file.path: list(forwards.links(file)) for file in files}
    assert {file.path: list(backwards.links(file)) for file in reversed(files)} == expected


@given(st.text(alphabet="{}()<>|,.*^%#[]$@!?ab1", max_size=40))
def test_any_text_can_be_read(text: str) -> None:
    parse_value(text)
    parse_annotation(text)


# ---------------------------------------------------------------- healing


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_code_without_faults_stays_as_it_is(path: Path) -> None:
    assert healed(path.read_bytes()) == path.read_bytes()


@pytest.mark.parametrize(
    ("broken", "names"),
    [
        ("x = f(1, [2\ndef g(): pass\n", ["x", "g"]),
        ("def f(a, b\n    return 1\ndef g(): pass\n", ["f", "g"]),
        ("class A(B, C\n    def m(self): pass\ndef g(): pass\n", ["A", "A.m", "g"]),
        ("x = {'a': (1,\nimport os\ndef g(): pass\n", ["x", "g"]),
        ("x = f('(' # (\n)\ndef g(): pass\n", ["x", "g"]),
        ("def f():\n    return g(\n@h\ndef g(): pass\n", ["f", "g"]),
        ("x = (\r\ndef g(): pass\r\n", ["g"]),
    ],
)
def test_what_follows_an_open_bracket_is_found(broken: str, names: list[str]) -> None:
    assert len(healed(broken.encode())) == len(broken.encode())
    found = syntax("m.py", broken)
    assert set(names) <= {symbol.qualname for symbol in found.symbols}
    assert b"".join(broken.encode()[u.span.start : u.span.end] for u in found.units) == broken.encode()


@given(st.text(alphabet="()[]{}'\"#\\\n def:x=", max_size=60))
def test_healing_keeps_every_position(text: str) -> None:
    made = healed(text.encode())
    assert len(made) == len(text.encode())
    assert made.count(b"\n") == text.count("\n")


# ---------------------------------------------------------------- names


def test_words_of_names() -> None:
    assert words("parse_HTTPUrl2") == ("parse", "http", "url", "2")
    assert words("__init__") == ("init",)


def test_tests_are_about_what_they_name() -> None:
    files = {
        "lib.py": "class UrlParser: pass\ndef parse_url(): pass\ndef url(): pass\ndef run(): pass\n",
        "tests/test_lib.py": "def test_parse_url_of_nothing(): pass\n"
        "class TestUrlParser:\n    def test_run(self): pass\n",
    }
    graph = graph_of(files)
    named = Named(graph.symbols)
    assert list(named.about(graph.symbols["tests/test_lib.py::test_parse_url_of_nothing"])) == ["lib.py::parse_url"]
    assert list(named.about(graph.symbols["tests/test_lib.py::TestUrlParser.test_run"])) == ["lib.py::UrlParser"]
    assert graph.tests["lib.py::parse_url"] == ("tests/test_lib.py::test_parse_url_of_nothing",)


def test_of_many_tests_the_closest_stay() -> None:
    tests = "".join(f"def test_{i}(): load()\n" for i in range(40)) + "def test_load(): load()\n"
    graph = graph_of({"lib.py": "def load(): pass\n", "tests/test_a.py": "from lib import load\n" + tests})
    assert len(graph.tests["lib.py::load"]) == 20
    assert graph.tests["lib.py::load"][0] == "tests/test_a.py::test_load"


def test_patched_names_are_references() -> None:
    text = "from unittest.mock import patch\ndef test_a():\n    with patch('pkg.core.Engine.run'): pass\n"
    graph = graph_of({"pkg/core.py": "class Engine:\n    def run(self): pass\n", "tests/test_a.py": text})
    [link] = [link for link in graph.links if link.reference.name == "run" and link.reference.role is Role.ATTRIBUTE]
    assert (link.state, link.targets) == (Resolution.RESOLVED, ("pkg/core.py::Engine.run",))
