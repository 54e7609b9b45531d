"""What a type checker misses in kept text and no report holds: trees, rules, both oracles' answers, the command."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from agentctx.assemble import Block, Gap, Piece, assemble
from agentctx.bench.omissions import missing_python, missing_typescript
from agentctx.bench.omissions.kept_tree import kept_files
from agentctx.bench.omissions.measure import (
    WHOLE,
    Known,
    Measured,
    Missed,
    Reading,
    Request,
    Selected,
    covered,
    from_outside,
    judged,
    measure,
)
from agentctx.bench.omissions.missing_python import PyrightMissing, class_names, pyright_missing
from agentctx.bench.omissions.missing_typescript import TscMissing, tsc_missing, type_names
from agentctx.bench.omissions.table import as_json, as_text
from agentctx.cli.bench import omissions as command
from agentctx.cli.bench.omissions import omissions
from agentctx.cli.services import CliServices
from agentctx.errors import UnavailableError, UsageError
from agentctx.prompt import Omission, OmissionAction, PromptDocument, PromptFile, Section, SymbolState
from agentctx.repo.parse import parse
from agentctx.source import UnitKind
from agentctx.spans import LineSpan
from tests.unit_checks import source

PYTHON = frozenset({"python"})
EMPTY = Measured("oracle", "python", 0, 0, 0, 0, 0, 0, 0, 0, 0, ())


def omission(symbol: str, name: str, **more: object) -> Omission:
    known = Omission(symbol, name, "function", None, None, SymbolState.DROPPED, "note", OmissionAction.FLAGGED)
    return replace(known, **more)  # type: ignore[arg-type]


# ---------------------------------------------------------------- trees

TEXT = (
    b'"""Doc."""\nfrom __future__ import annotations\nimport os\n\ndef f():\n    a = 1\n    return a\n\n# a comment\n'
    b"def g():\n    pass\n"
)


def document(
    path: str, language: str, pieces: Sequence[tuple[int, int, bytes]], gaps: Sequence[Gap | None]
) -> PromptDocument:
    """`pieces`: first line, last line, text."""
    file = PromptFile(path, ("#", ""), 11, language)
    made = [
        Piece((path, number), UnitKind.STATEMENT, text, LineSpan(first, last))
        for number, (first, last, text) in enumerate(pieces)
    ]
    done = assemble([Block(Section.CODE, tuple(made), file, tuple(gaps))])
    return PromptDocument(done.text, done.units, {path: file})


def test_kept_lines_stand_where_they_stood_and_gaps_parse() -> None:
    text = document("a.py", "python", [(3, 3, b"import os\n"), (5, 5, b"def f():\n"), (10, 10, b"def g():\n")],
                    [Gap(2, b""), None, Gap(4, b"    "), Gap(1, b"    ")])  # fmt: skip
    [made] = kept_files(text, {"a.py": TEXT}, PYTHON).values()
    lines = ["", "from __future__ import annotations", "import os", "", "def f():", "    ...", "", "", ""]
    assert made.decode().split("\n") == [*lines, "def g():", "    ...", ""]
    compile(made, "a.py", "exec")


def test_lines_are_as_many_as_in_the_file() -> None:
    text = document("a.py", "python", [(5, 5, b"def f():\n"), (7, 7, b"    return a\n")],
                    [Gap(4, b""), Gap(1, b"    "), Gap(4, b"")])  # fmt: skip
    [made] = kept_files(text, {"a.py": TEXT}, PYTHON).values()
    assert made.split(b"\n")[4:7] == [b"def f():", b"    ...", b"    return a"]
    assert made.count(b"\n") == TEXT.count(b"\n")


def test_other_languages_are_left_out_and_stubs_beside_their_code() -> None:
    text = document("a.pyi", "python", [(3, 3, b"import os\n")], [Gap(2, b""), Gap(8, b"")])
    assert set(kept_files(text, {"a.pyi": TEXT}, PYTHON)) == {"a.pyi"}
    assert kept_files(text, {"a.pyi": TEXT, "a.py": TEXT}, PYTHON) == {}
    assert kept_files(text, {"a.pyi": TEXT}, frozenset({"go"})) == {}


# ---------------------------------------------------------------- rules


def test_what_an_omission_covers() -> None:
    assert covered(omission("m.py::C.f~2", "f")) == {"f"}
    assert covered(omission("g", "g", candidates=("a.py::A.g", "b.py::h"))) == {"g", "h"}
    assert covered(omission("a.py:1", "from m import (x as y)", kind="import")) == {
        "from",
        "m",
        "import",
        "x",
        "as",
        "y",
    }
    assert covered(omission("src/pk/__init__.py", "__init__")) == {"pk", "__init__"}
    assert covered(omission("src/pk/util.ts", "util")) == {"util"}


def judge(missed: Missed, *omissions: Omission, **more: object) -> Measured:
    selected = Selected(7, "a.py#f", 500, {"a.py": b""}, omissions, **more)  # type: ignore[arg-type]
    return judged(EMPTY, selected, Reading((missed, missed)), Known(frozenset(), {"a.py": frozenset({"f"})}))


def test_reported_only_with_the_name_and_from_the_file() -> None:
    missed = Missed("a.py", 3, "f", "no f")
    there = omission("b.py::f", "f", referenced_from=(("a.py", 3),))
    found = judge(missed, there)
    assert (found.missed, found.reported, found.on_line, found.silent) == (1, 1, 1, ())
    found = judge(missed, replace(there, referenced_from=(("a.py", 1),)))
    assert (found.reported, found.on_line) == (1, 0)
    for other in (
        replace(there, referenced_from=(("b.py", 3),)),
        replace(there, symbol="b.py::g", name="g"),
        replace(there, state=SymbolState.KEPT),
    ):
        [silent] = judge(missed, other).silent
        assert (silent.selection, silent.missed, silent.kind) == (7, missed, "other")


def test_a_module_that_the_line_refers_to_says_what_it_has() -> None:
    module = omission("pk/__init__.py", "__init__", kind="module", referenced_from=(("a.py", 3),))
    assert judge(Missed("a.py", 3, "f", "", module=True), module).reported == 1
    assert judge(Missed("a.py", 4, "f", "", module=True), module).reported == 0
    assert judge(Missed("a.py", 3, "f", ""), module).reported == 0


def test_a_name_that_a_re_export_gives() -> None:
    there = omission("b.py::g", "g", referenced_from=(("a.py", 3),))
    links = {("a.py", 3, "f"): frozenset({"b.py::g"})}
    missed = Missed("a.py", 3, "f", "", module=True)
    assert judge(missed, there, links=links).reported == 1
    [silent] = judge(missed, replace(there, state=SymbolState.KEPT), links=links).silent
    assert silent.kind == "re-export"


def test_a_statement_that_hands_on_covers_its_line() -> None:
    handed = omission("pk/__init__.py:1", "from .b import *", kind="re-export", referenced_from=(("a.py", 3),))
    assert judge(Missed("a.py", 3, "f", "", module=True), handed).reported == 1
    assert judge(Missed("a.py", 4, "f", "", module=True), handed).reported == 0


def test_what_a_library_has_not_got_does_not_count() -> None:
    missed = Missed("a.py", 3, "windll", "", module=True)
    selected = Selected(0, "a.py#f", 500, {"a.py": b""}, ())
    known = Known(frozenset(), {}, frozenset({("a.py", "windll")}))
    found = judged(EMPTY, selected, Reading((missed,)), known)
    assert (found.missed, found.outside, found.silent) == (0, 1, ())
    bare = judged(EMPTY, selected, Reading((replace(missed, module=False),)), known)  # a use of the name still counts
    assert (bare.missed, bare.outside) == (1, 0)


@pytest.mark.parametrize(
    ("path", "text", "outside"),
    [
        (
            "a.py",
            "from ctypes import windll, c_int\nfrom . import b\nfrom pk.x import y\nimport os\n",
            {"windll", "c_int"},
        ),
        ("a.py", "try:\n    from lib import x\nexcept ImportError:\n    from pk import x\n", set()),
        ("a.ts", 'import { a } from "lib";\nimport { b } from "./c";\nimport { d } from "@pk/e";\n', {"a"}),
    ],
)
def test_what_comes_from_a_library(path: str, text: str, outside: set[str]) -> None:
    assert from_outside(parse(source(path, text)), frozenset({"a", "b", "c", "pk"})) == outside


def test_a_local_variable_is_silent_and_told_apart() -> None:
    [silent] = judge(Missed("a.py", 3, "x", "")).silent
    assert silent.kind == "local"


def test_what_is_known_and_what_is_broken_does_not_count() -> None:
    missed = Missed("a.py", 3, "f", "")
    selected = Selected(0, "a.py#f", 500, {"a.py": b""}, ())
    found = judged(EMPTY, selected, Reading((missed,)), Known(frozenset({missed.key}), {}))
    assert (found.missed, found.known, found.silent) == (0, 1, ())
    found = judged(EMPTY, selected, Reading((missed,), frozenset({"a.py"})), Known(frozenset(), {}))
    assert (found.missed, found.broken, found.silent) == (0, 1, ())


# ---------------------------------------------------------------- the whole measure

FILES = {
    "a.py": "from b import helper\n\n\ndef one():\n    return helper(1)\n\n\ndef two():\n    return one()\n",
    "b.py": "def helper(x):\n    return x\n",
}


class Nothing:
    """An oracle that can't find a name wherever a tree but the whole has a.py."""

    name = "fake 1"

    def __init__(self, missed: str) -> None:
        self._missed = missed
        self.read_trees: list[str] = []

    def read(self, folder: Path, trees: Sequence[str]) -> Mapping[str, Reading]:
        self.read_trees += trees
        missed = Missed("a.py", 4, self._missed, f"no {self._missed}")
        made = {tree: (missed,) for tree in trees if tree != WHOLE and (folder / tree / "a.py").is_file()}
        return {tree: Reading(made.get(tree, ())) for tree in trees}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    for path, text in FILES.items():
        (tmp_path / path).write_text(text)
    return tmp_path


def test_selections_are_read_in_batches_and_the_same_again(repo: Path) -> None:
    request = Request(repo, "python", 3, 1, (200, 400))
    with CliServices() as services:
        oracle = Nothing("nowhere")
        found = measure(request, oracle, services, lambda _: None)
        assert oracle.read_trees == [WHOLE, "s00000", "s00001", "s00002"]
        assert found == measure(request, Nothing("nowhere"), services, lambda _: None)
        last = measure(replace(request, first=2, selections=1), Nothing("nowhere"), services, lambda _: None)
    assert found.selections == 3
    assert found.missed == len(found.silent) > 0
    assert last.silent == tuple(one for one in found.silent if one.selection == 2)
    assert {one.kind for one in found.silent} == {"local"}
    text = as_text(found, 1)
    assert "3 selections" in text
    assert f"{found.missed} silent, {found.missed} local" in text
    assert f"case 1/{found.silent[0].selection} (--focus " in text
    assert "a.py:4 nowhere (local): no nowhere" in text
    assert as_json(found, 1)["silent"][0]["missed"]["name"] == "nowhere"


def test_without_definitions_there_is_nothing_to_focus_on(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("\n")
    with CliServices() as services, pytest.raises(UsageError, match="no definitions in python"):
        measure(Request(tmp_path, "python", 1, 0, (400, 500)), Nothing("x"), services, lambda _: None)


@pytest.mark.parametrize(("missed", "code"), [("nowhere", 1), ("one", 0)])
def test_the_command(repo: Path, missed: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = (
        Nothing(missed) if code else type("Silent", (Nothing,), {"read": lambda *a: {t: Reading() for t in a[2]}})("")
    )
    monkeypatch.setattr(command, "_oracle", lambda *_: oracle)
    options = ["--repo", str(repo), "--selections", "2", "--budget", "200", "400", "--format", "json"]
    done = CliRunner().invoke(omissions, options)
    assert done.exit_code == code
    found = json.loads(done.stdout)
    assert (found["selections"], found["oracle"]) == (2, "fake 1")
    assert bool(found["silent"]) == bool(code)
    wrong = CliRunner().invoke(omissions, ["--repo", str(repo), "--budget", "500", "400"])
    assert isinstance(wrong.exception, UsageError)


# ---------------------------------------------------------------- oracles


def test_what_classes_bind() -> None:
    found = class_names(
        {
            "a.py": b"class A(B[int]):\n    x = 1\n    __slots__ = ('s',)\n    def f(self):\n        self.y = 1\n",
            "b.py": b"class B(m.C): z: int\nclass C(B): w = 1\n",
            "c.py": b"class (:",
        }
    )
    assert found["A"] == {"x", "__slots__", "s", "f", "y", "z", "w"}
    assert set(found) == {"A", "B", "C"}
    types = type_names(
        {"a.ts": b"interface A extends B {\n  x: { y: number }\n}\nclass B { z() {} }\ntype D = A & { w: 1 };"}
    )
    assert {"x", "y", "z"} <= types["A"]
    assert "w" not in types["A"]
    assert "z" in types["D"]


def write(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def names(reading: Reading) -> list[tuple[str, int, str, bool]]:
    return sorted((one.path, one.line, one.name, one.module) for one in reading.missed)


PY_TREE = {
    "t/src/pk/m.py": "class A:\n    def f(self):\n        return self.zz + self.unheard\n",
    "t/src/pk/n.py": "from .m import A, B\nfrom .nope import (\n    Z,\n    Y as W,\n)\n"
    "import pk.nono\nfrom . import m\nm.foo\ngone\n",
    "t/src/pk/broken.py": "def (:\n",
}
PY_SAID = [
    ("m.py", 3, 'Cannot access attribute "zz" for class "A*"\n  Attribute "zz" is unknown'),
    ("m.py", 3, 'Cannot access attribute "unheard" for class "A*"\n  Attribute "unheard" is unknown'),
    ("m.py", 3, 'Cannot access attribute "zz" for class "None"\n  Attribute "zz" is unknown'),
    ("n.py", 1, '"B" is unknown import symbol'),
    ("n.py", 2, 'Import ".nope" could not be resolved'),
    ("n.py", 6, 'Import "pk.nono" could not be resolved'),
    ("n.py", 8, '"foo" is not a known attribute of module "..m"'),
    ("n.py", 9, '"gone" is not defined'),
    ("broken.py", 1, '"x" is not defined'),
]
PY_NAMES = [
    ("src/pk/m.py", 3, "zz", False),
    ("src/pk/n.py", 1, "B", True),
    ("src/pk/n.py", 3, "Z", False),
    ("src/pk/n.py", 4, "Y", False),
    ("src/pk/n.py", 6, "nono", True),
    ("src/pk/n.py", 8, "foo", True),
    ("src/pk/n.py", 9, "gone", False),
]


def fake(folder: Path, output: str, code: int = 1) -> str:
    (folder / "said.txt").write_text(output)
    program = folder / "program"
    program.write_text(f"#!/bin/sh\ncat '{folder / 'said.txt'}'\nexit {code}\n")
    program.chmod(0o755)
    return str(program)


def test_pyrights_answers_are_names(tmp_path: Path) -> None:
    trees, tool = tmp_path / "trees", tmp_path / "tool"
    write(trees, PY_TREE)
    tool.mkdir()
    said = [
        {"file": str(trees / "t/src/pk" / file), "message": message, "range": {"start": {"line": line - 1}}}
        for file, line, message in PY_SAID
    ]
    oracle = PyrightMissing(fake(tool, json.dumps({"generalDiagnostics": said})), {"A": frozenset({"zz"})})
    reading = oracle.read(trees, ["t"])["t"]
    assert names(reading) == PY_NAMES
    assert reading.broken == {"src/pk/broken.py"}
    config = json.loads((trees / "pyrightconfig.json").read_text())
    assert config["executionEnvironments"] == [{"root": "t", "extraPaths": ["t/src"]}]
    assert oracle.name == "pyright of unknown version"


def test_pyright_that_says_nothing_failed(tmp_path: Path) -> None:
    (tmp_path / "trees").mkdir()
    with pytest.raises(UnavailableError, match="pyright failed"):
        PyrightMissing(fake(tmp_path, "oops"), {}).read(tmp_path / "trees", [])


TS_TREE = {
    "t/a.ts": "import {\n  X,\n  Y as Z,\n} from './nope';\n"
    "import './gone.js';\nimport * as b from './b';\nb.q;\nnope1;\nnew C().r;\n",
    "t/b.ts": "export class C { }\n",
}
TS_SAID = """a.ts(4,8): error TS2307: Cannot find module './nope' or its corresponding type declarations.
a.ts(5,8): error TS2307: Cannot find module './gone.js' or its corresponding type declarations.
a.ts(7,3): error TS2339: Property 'q' does not exist on type 'typeof import("/t/b")'.
a.ts(8,1): error TS2552: Cannot find name 'nope1'. Did you mean 'nope'?
a.ts(8,1): error TS2724: '"./b"' has no exported member named 'D'. Did you mean 'C'?
a.ts(9,9): error TS2339: Property 'r' does not exist on type 'C'.
a.ts(9,9): error TS2339: Property 'other' does not exist on type 'C'.
a.ts(9,9): error TS2339: Property 'r' does not exist on type 'void'.
"""
TS_NAMES = [
    ("a.ts", 2, "X", False),
    ("a.ts", 3, "Y", False),
    ("a.ts", 5, "gone", True),
    ("a.ts", 7, "q", True),
    ("a.ts", 8, "D", True),
    ("a.ts", 8, "nope1", False),
    ("a.ts", 9, "r", False),
]


def test_tscs_answers_are_names(tmp_path: Path) -> None:
    write(tmp_path / "trees", TS_TREE)
    oracle = TscMissing(fake(tmp_path, TS_SAID, 2), {"C": frozenset({"r"})}, {})
    assert names(oracle.read(tmp_path / "trees", ["t"])["t"]) == TS_NAMES
    config = json.loads((tmp_path / "trees" / "t" / missing_typescript.CONFIG).read_text())
    assert config["compilerOptions"]["moduleDetection"] == "force"
    with pytest.raises(UnavailableError, match="tsc failed"):
        TscMissing(fake(tmp_path, "error TS5023: Unknown compiler option", 1), {}, {}).read(tmp_path / "trees", ["t"])


def test_files_that_do_not_parse_are_taken_out(tmp_path: Path) -> None:
    write(tmp_path / "trees", TS_TREE)
    oracle = TscMissing(fake(tmp_path, "b.ts(1,1): error TS1005: ';' expected.\n", 2), {}, {})
    assert oracle.read(tmp_path / "trees", ["t"])["t"].broken == {"b.ts"}
    assert not (tmp_path / "trees/t/b.ts").exists()


def test_oracles_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="no pyright in"):
        pyright_missing(tmp_path, {})
    with pytest.raises(UnavailableError, match="no tsc in"):
        tsc_missing(tmp_path, {}, {})


@pytest.mark.skipif(shutil.which(missing_python.PROGRAM) is None, reason="no pyright on PATH")
def test_the_real_pyright(tmp_path: Path) -> None:
    write(tmp_path, PY_TREE)
    assert names(pyright_missing(None, {"A": frozenset({"zz"})}).read(tmp_path, ["t"])["t"]) == PY_NAMES


@pytest.mark.skipif(shutil.which(missing_typescript.PROGRAM) is None, reason="no tsc on PATH")
def test_the_real_tsc(tmp_path: Path) -> None:
    write(tmp_path, TS_TREE)
    found = names(tsc_missing(None, {"C": frozenset({"r"})}, {}).read(tmp_path, ["t"])["t"])
    assert {("a.ts", 2, "X", False), ("a.ts", 3, "Y", False), ("a.ts", 7, "q", True)} <= set(found)
