"""The graph: determinism, speed, depth, questions, module names."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentctx.prompt import TestRef
from agentctx.repo.builtin_members import BUILTIN_MEMBERS
from agentctx.repo.field_types import class_name
from agentctx.repo.graph import build_graph, find_symbols, find_test, symbol_at
from agentctx.repo.modules import ModuleMap
from agentctx.source import RepoGraph, Resolution, Role, SymbolKind
from tests.unit.repo.test_graph_cases import check_invariants, graph_of, syntax

ROOT = Path(__file__).parents[3]


def own_files() -> dict[str, str]:
    """This package's own repository side, and its tests."""
    folders = ("agentctx", "agentctx/repo", "agentctx/repo/logs", "tests/unit/repo")
    paths = [path for folder in folders for path in sorted((ROOT / folder).glob("*.py"))]
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}


@pytest.fixture(scope="module")
def own() -> RepoGraph:
    return graph_of(own_files())


# ---------------------------------------------------------------- a real repository


def test_invariants_of_a_real_repository(own: RepoGraph) -> None:
    check_invariants(own)


def test_nearly_everything_resolves(own: RepoGraph) -> None:
    links = [link for link in own.links if not own.files[link.reference.path].is_test]
    unknown = [link for link in links if link.state is Resolution.UNKNOWN]
    ambiguous = [link for link in links if link.state is Resolution.AMBIGUOUS]
    assert len(links) > 1_000
    assert len(unknown) < 0.02 * len(links)
    assert len(ambiguous) < 0.10 * len(links)


def test_known_relations_of_a_real_repository(own: RepoGraph) -> None:
    read_logs = "agentctx/repo/logs/reader.py::read_logs"
    assert "tests/unit/repo/test_logs_cases.py::test_case" in own.callers[read_logs]
    assert "tests/unit/repo/test_logs.py::test_the_order_of_mentions" in own.tests[read_logs]
    assert "agentctx/errors.py::GitError" not in own.symbols
    assert "agentctx/vcs.py::GitError" in own.subclasses["agentctx/errors.py::AgentctxError"]


def test_it_is_fast(own: RepoGraph) -> None:
    started = time.process_time()
    build_graph(list(own.files.values()))
    per_link = (time.process_time() - started) / len(own.links)
    # 0.5 s for the 20,000 links of a repository of 80 files, with room for a slow machine.
    assert per_link < 100e-6


# ---------------------------------------------------------------- determinism

SMALL = {
    "src/p/__init__.py": "from .a import *\nfrom .b import B as C\n",
    "src/p/a.py": "from .b import B\nclass A(B):\n    def m(self): self.x()\n    def n(self): return B().m()\n",
    "src/p/b.py": "class B:\n    def m(self): pass\n    def k(self, o): o.m(); o.q()\nclass D:\n    def q(self): pass\n"
    "class E:\n    def q(self): pass\n",
    "src/p/c.py": "if 1:\n    def f(): pass\nelse:\n    def f(): pass\nf()\n",
    "tests/conftest.py": "import pytest\n@pytest.fixture\ndef z(): pass\n@pytest.fixture\ndef y(z): pass\n",
    "tests/test_a.py": "from p import A, C\ndef test_1(y): A().m(); C()\ndef test_2(z, y): A().n()\n",
}


def dump(graph: RepoGraph) -> str:
    return repr(graph)


def test_the_order_of_files_does_not_matter() -> None:
    files = [syntax(path, text) for path, text in SMALL.items()]
    expected = dump(build_graph(files))
    for seed in range(5):
        random.Random(seed).shuffle(files)
        assert dump(build_graph(files)) == expected


def test_the_hash_seed_does_not_matter() -> None:
    code = (
        "import hashlib; from tests.unit.repo.test_graph import SMALL, dump, graph_of, own_files\n"
        "files = {path: text for path, text in own_files().items() if path.startswith('agentctx/repo/logs/')}\n"
        "print(hashlib.sha256((dump(graph_of(SMALL)) + dump(graph_of(files))).encode()).hexdigest())"
    )
    digests = set()
    for seed in ("0", "1", "4242"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout)
    assert len(digests) == 1
    assert len(digests.pop().strip()) == 64


# ---------------------------------------------------------------- depth and broken code


def test_long_chains_need_no_recursion() -> None:
    n = 1_200
    files = {f"m{i}.py": f"from m{i + 1} import thing\n" for i in range(n)}
    files[f"m{n}.py"] = "def thing(): pass\n"
    files["use.py"] = "from m0 import thing\nthing()\n"
    files["deep.py"] = "class C0:\n    def far(self): pass\n" + "".join(
        f"class C{i}(C{i - 1}): pass\n" for i in range(1, n)
    )
    files["call.py"] = f"from deep import C{n - 1}\ndef go(c: C{n - 1}): c.far()\n"
    files["returns.py"] = "".join(f"def f{i}() -> f{i + 1}: pass\n" for i in range(n)) + "x = f0()\nx.far()\n"
    graph = graph_of(files)
    found = {
        (link.reference.path, link.reference.name): link for link in graph.links if link.reference.role is Role.CALL
    }
    assert found["use.py", "thing"].targets == (f"m{n}.py::thing",)
    assert found["call.py", "far"].targets == ("deep.py::C0.far",)
    assert len(graph.subclasses["deep.py::C0"]) == n - 1


@pytest.mark.parametrize(
    "text",
    [
        "class A(B): pass\nclass B(A):\n    def m(self): self.m(); self.nope(); super().m()\n",
        "class A(A): pass\n",
        "class A(X, Y): pass\nclass X: pass\nclass Y: pass\nclass B(Y, X): pass\nclass C(A, B): pass\nC().m\n",
        "from m import a as b, b as a\na()\nfrom m import *\nc()\n",
        "import m.m.m\nm.m.m.x()\n",
        "from . import m\nfrom .. import q\nfrom .... import r\nm.m.m.m\n",
        "def f() -> f: pass\nx = f()\nx.y\ny: y = y()\ny.z\n",
        "class A:\n    a: 'A'\n    def f(self): self.a.a.a.f(); self.f.f.f()\n",
        "def f(:\n  class\nimport\nfrom x import (\n",
        "",
    ],
)
def test_cycles_and_broken_code(text: str) -> None:
    check_invariants(graph_of({"m.py": text, "other.py": "import m\nfrom m import *\nm.a.b()\n"}))


def test_other_languages_contribute_their_units_only() -> None:
    from agentctx.repo.parse import parse
    from agentctx.source import SourceFile

    plain = parse(SourceFile("notes.md", b"# x\n\ntext\n", "d", None))
    graph = build_graph([plain])
    assert dict(graph.symbols) == {}
    assert graph.links == ()
    assert list(graph.files) == ["notes.md"]


# ---------------------------------------------------------------- single rules


def call(graph: RepoGraph, name: str) -> tuple[Resolution, tuple[str, ...]]:
    [link] = [link for link in graph.links if link.reference.name == name and link.reference.role is Role.CALL]
    return link.state, link.targets


def test_at_most_eight_candidates_nearest_first() -> None:
    text = "".join(f"class K{i:02}:\n    def act(self): pass\n" for i in range(12))
    graph = graph_of({"a/many.py": text, "b/one.py": "class Z:\n    def act(self): pass\ndef f(x): x.act()\n"})
    state, targets = call(graph, "act")
    assert state is Resolution.AMBIGUOUS
    assert len(targets) == 8
    assert "b/one.py::Z.act" in targets


def test_code_does_not_call_what_only_tests_define() -> None:
    files = {"a.py": "def f(x): x.probe()\n", "tests/test_a.py": "class Fake:\n    def probe(self): pass\n"}
    assert call(graph_of(files), "probe") == (Resolution.EXTERNAL, ())


def test_names_of_builtin_members_are_never_certain() -> None:
    assert {"append", "get", "items", "read", "exists", "group", "strip"} <= BUILTIN_MEMBERS
    files = {"a.py": "class Only:\n    def append(self): pass\ndef f(x): x.append(1)\n"}
    assert call(graph_of(files), "append") == (Resolution.AMBIGUOUS, ("a.py::Only.append",))


def test_the_library_wins_over_a_folder_of_the_same_name() -> None:
    files = {
        "build/helper.py": "x = 1\n",
        "a.py": "import build, json\nbuild.run()\njson.go()\n",
        "sub/json.py": "def go(): pass\n",
    }
    graph = graph_of(files)
    assert call(graph, "run")[0] is Resolution.EXTERNAL
    assert call(graph, "go")[0] is Resolution.EXTERNAL


def test_overloads_and_setters_give_way() -> None:
    text = """
from typing import overload
@overload
def f(x: int) -> int: ...
@overload
def f(x: str) -> str: ...
def f(x): return x
f(1)
"""
    assert call(graph_of({"a.py": text}), "f") == (Resolution.RESOLVED, ("a.py::f~3",))


@pytest.mark.parametrize(
    ("annotation", "name"),
    [
        ("X", "X"),
        ("'m.X'", "m.X"),
        ("X | None", "X"),
        ("None | X", "X"),
        ("t.Optional[X]", "X"),
        ("X[int]", "X"),
        ("Final[X]", "X"),
        ("ClassVar[m.X]", "m.X"),
        ("list[X]", "list"),
        ("X | Y", None),
        ("dict[str, X] | None", None),
        ("", None),
    ],
)
def test_class_of_an_annotation(annotation: str, name: str | None) -> None:
    assert class_name(annotation) == name


@pytest.mark.parametrize(
    ("dotted", "importer", "path"),
    [
        ("click.core", "tests/test_x.py", "src/click/core.py"),
        ("click", "app.py", "src/click/__init__.py"),
        ("helpers", "tests/test_x.py", "tests/helpers.py"),
        ("helpers", "app.py", None),
        ("tests.helpers", "tests/test_x.py", "tests/helpers.py"),
        ("pkga.mod", "packages/a/tests/test_a.py", "packages/a/src/pkga/mod.py"),
        ("common", "packages/a/run.py", "packages/a/common/__init__.py"),
        ("common", "packages/b/run.py", "packages/b/common/__init__.py"),
        ("both", "app.py", "both/__init__.py"),
        ("types", "app.py", None),
        ("nothing", "app.py", None),
    ],
)
def test_module_names(dotted: str, importer: str, path: str | None) -> None:
    modules = ModuleMap(
        [
            *("app.py", "src/click/__init__.py", "src/click/core.py", "src/click/core.pyi", "src/click/types.py"),
            *("tests/helpers.py", "tests/test_x.py", "packages/a/src/pkga/__init__.py", "packages/a/src/pkga/mod.py"),
            *("packages/a/common/__init__.py", "packages/b/common/__init__.py", "both.py", "both/__init__.py"),
        ]
    )
    found, _ = modules.absolute(dotted, importer)
    assert (found.path if found else None) == path


# ---------------------------------------------------------------- questions

QUESTIONS = {
    "src/pkg/mod.py": """\
LIMIT = 3
class A:
    size = 1
    def __init__(self):
        self.x = (
            1)
    def m(self):
        def inner():
            return 1
        return inner()
def m(): pass
""",
    "test_base.py": "class Base:\n    def test_far(self): pass\n",
    "test_q.py": """\
from test_base import Base
class Local(Base):
    def test_mid(self): pass
class TestIt(Local):
    def test_own(self): pass
    class TestInner:
        def test_in(self): pass
def test_twice(): pass
def test_twice(): assert 0
""",
}


@pytest.fixture(scope="module")
def asked() -> RepoGraph:
    return graph_of(QUESTIONS)


@pytest.mark.parametrize(
    ("line", "qualname"),
    [
        (1, "LIMIT"),
        (2, "A"),
        (3, "A.size"),
        (4, "A.__init__"),
        (6, "A.__init__"),
        (9, "A.m.inner"),
        (10, "A.m"),
        (11, "m"),
    ],
)
def test_symbol_at(asked: RepoGraph, line: int, qualname: str) -> None:
    found = symbol_at(asked, "src/pkg/mod.py", line)
    assert found is not None
    assert found.qualname == qualname


def test_no_symbol_there(asked: RepoGraph) -> None:
    assert symbol_at(asked, "src/pkg/mod.py", 99) is None
    assert symbol_at(asked, "absent.py", 1) is None
    assert symbol_at(asked, "test_q.py", 1) is None


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("src/pkg/mod.py::A.m", ["src/pkg/mod.py::A.m"]),
        ("A.m", ["src/pkg/mod.py::A.m"]),
        ("m", ["src/pkg/mod.py::m"]),
        ("pkg.mod.A.m", ["src/pkg/mod.py::A.m"]),
        ("pkg.mod.m", ["src/pkg/mod.py::m"]),
        ("m.inner", ["src/pkg/mod.py::A.m.inner"]),
        ("inner", ["src/pkg/mod.py::A.m.inner"]),
        ("mod", ["src/pkg/mod.py"]),
        ("other.mod.m", []),
        ("nothing", []),
    ],
)
def test_find_symbols(asked: RepoGraph, text: str, ids: list[str]) -> None:
    assert [symbol.id for symbol in find_symbols(asked, text)] == ids


@pytest.mark.parametrize(
    ("ref", "id"),
    [
        (TestRef("test_q.py", ("TestIt", "test_own")), "test_q.py::TestIt.test_own"),
        (TestRef("test_q.py", ("TestIt", "test_mid"), "x"), "test_q.py::Local.test_mid"),
        (TestRef("test_q.py", ("TestIt", "test_far")), "test_base.py::Base.test_far"),
        (TestRef("test_q.py", ("TestIt", "TestInner", "test_in")), "test_q.py::TestIt.TestInner.test_in"),
        (TestRef("test_q.py", ("TestIt",)), "test_q.py::TestIt"),
        (TestRef("test_q.py", ("test_twice",)), "test_q.py::test_twice~2"),
        (TestRef("test_q.py", ("TestIt", "test_none")), None),
        (TestRef("test_q.py", ("test_none",)), None),
        (TestRef("test_q.py"), None),
        (TestRef("absent.py", ("test_own",)), None),
    ],
)
def test_find_test(asked: RepoGraph, ref: TestRef, id: str | None) -> None:
    assert find_test(asked, ref) == id


def test_modules_are_symbols(asked: RepoGraph) -> None:
    module = asked.symbols["src/pkg/mod.py"]
    assert (module.kind, module.name, module.lines.end) == (SymbolKind.MODULE, "mod", 11)


def test_strings_in_aliases_of_types_are_references() -> None:
    text = 'from typing import Union\n\n\nclass A: ...\n\n\nX = Union["A", int]\ny = {"A": 1}["A"]\n'
    graph = graph_of({"m.py": text})
    assert [link.reference.line for link in graph.links if link.targets == ("m.py::A",)] == [7]
