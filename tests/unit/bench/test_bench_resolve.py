"""References beside an oracle: positions, what agrees, what counts, and the real server where there is one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from agentctx.bench.oracles.lsp import LspOracle, Server
from agentctx.bench.oracles.oracle import Answer, Place, Position, RememberedOracle
from agentctx.bench.oracles.pyright import PROGRAM, pyright
from agentctx.bench.resolve.import_places import python_places
from agentctx.bench.resolve.measure import compare, content_digest, sources
from agentctx.bench.resolve.table import as_json, as_text, differences
from agentctx.errors import UnavailableError, UsageError
from agentctx.repo.parse import parse
from agentctx.source import SourceFile

FILES = {
    "a.py": "import b\nfrom b import f as g, C\nclass D(C):\n"
    "    def m(self, ü='ü'): return g(), b.f, C(), '😀' and g\n",
    "b.py": "def f(): pass\nclass C:\n    def __init__(self): pass\n",
    "empty.py": "",
}


class Table:
    """An oracle that knows some answers by the place of the question."""

    name = "table 1"

    def __init__(self, answers: Mapping[tuple[str, int, int], Answer]) -> None:
        self._answers = answers
        self.asked: list[tuple[str, int, int]] = []

    def definitions(self, path: str, positions: Sequence[Position]) -> list[Answer]:
        keys = [(path, at.line, at.column) for at in positions]
        self.asked += keys
        return [self._answers.get(key, ()) for key in keys]


F, C, INIT, B = Place("b.py", 0, 4), Place("b.py", 1, 6), Place("b.py", 2, 8), Place("b.py", 0, 0)
RIGHT = {
    ("a.py", 0, 7): (B,),
    ("a.py", 1, 14): (F,),
    ("a.py", 1, 22): (C,),
    ("a.py", 2, 8): (C,),
    ("a.py", 3, 31): (F,),
    ("a.py", 3, 36): (B,),
    ("a.py", 3, 38): (F,),
    ("a.py", 3, 41): (INIT,),  # a class and its `__init__` are alike
    ("a.py", 3, 55): (F,),  # columns are UTF-16: the emoji counts twice
}


def files() -> list[SourceFile]:
    return [SourceFile(path, text.encode(), path, "python") for path, text in FILES.items()]


def test_every_reference_is_asked_for_where_it_stands() -> None:
    oracle = Table(RIGHT)
    found = compare(files(), oracle)
    assert sorted(oracle.asked) == sorted(RIGHT)
    assert [row.agreed for row in found.rows] == [2, 3, 1, 0, 0, 1, 2, 6, 9]
    assert found.rows[-1].precision == found.rows[-1].recall == 1.0
    assert list(differences(found)) == []


def test_what_is_wrong_and_what_does_not_count() -> None:
    outside = {("a.py", 2, 8): (Place(None, 4, 0),)}
    elsewhere = {("a.py", 3, 31): (C,)}
    empty = {("a.py", 0, 7): (Place("empty.py", 0, 0),)}
    silent: dict[tuple[str, int, int], Answer] = {("a.py", 3, 38): ()}
    found = compare(files(), Table({**RIGHT, **outside, **elsewhere, **empty, **silent}))
    rows = {row.kind: row for row in found.rows}
    assert (rows["bases"].total, rows["bases"].wrong) == (0, 1)
    assert (rows["calls"].total, rows["calls"].agreed, rows["calls"].wrong, rows["calls"].recall) == (2, 1, 1, 0.5)
    assert rows["imports"].total == 2
    assert rows["attributes"].total == 0
    assert list(differences(found)) == [
        "calls wrong a.py:4 g: b.py::f | b.py:2",
        "bases wrong a.py:3 C: b.py::C | outside:5",
    ]
    assert "| calls | 2 | 1 | 1 | 0 | 0 | 0.500 | 0.500 |" in as_text(found)
    assert as_json(found)["rows"][3] == {
        "kind": "decorators",
        **dict.fromkeys(("total", "agreed", "wrong", "ambiguous", "unknown"), 0),
        **dict.fromkeys(("precision", "recall")),
    }


def test_unresolved_references_cost_recall_only() -> None:
    text = "class A:\n    def get(self): pass\nclass B:\n    def get(self): pass\ndef f(x): x.get()\n"
    file = SourceFile("m.py", text.encode(), "m", "python")
    found = compare([file], Table({("m.py", 4, 12): (Place("m.py", 1, 8),)}))
    calls = found.rows[0]
    assert (calls.total, calls.ambiguous, calls.wrong, calls.recall, calls.precision) == (1, 1, 0, 0.0, None)


def test_answers_are_remembered_by_content(tmp_path: Path) -> None:
    store = tmp_path / "answers.json"
    first = RememberedOracle(Table(RIGHT), store, content_digest(files()))
    expected = compare(files(), first).rows
    first.save()
    silent = Table({})
    again = RememberedOracle(silent, store, content_digest(files()))
    assert compare(files(), again).rows == expected
    assert silent.asked == []
    changed = RememberedOracle(silent, store, "other")
    assert compare(files(), changed).rows[-1].total == 0
    store.write_text("{", "utf-8")
    with pytest.raises(UsageError, match="can't read"):
        RememberedOracle(silent, store, "other")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import a.b.c\n", ["c"]),
        ("import a.b.c as d, e\n", ["c", "e"]),
        ("from .x import (\n  y,  # y\n  z as w,\n)\n", ["y", "z"]),
        ("from x import *\n", [None]),
        ("\ufeffimport a\n", ["a"]),
        ("'ü'; import a; import b\n", ["a", "b"]),
        ("import (\n", []),
    ],
)
def test_places_of_imported_names(text: str, names: list[str | None]) -> None:
    data = text.encode()
    syntax = parse(SourceFile("m.py", data, "m", "python"))
    found = python_places(syntax, data)
    ends = [None if at is None else data[at:].decode() for at in found]
    assert [None if end is None else end[: len(name or "")] for end, name in zip(ends, names, strict=False)] == names


def test_an_oracle_that_is_not_there_or_ends(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="there is no pyright-langserver"):
        pyright(tmp_path, None)
    with pytest.raises(UnavailableError, match="can't start"):
        LspOracle(Server("x", (str(tmp_path / "nowhere"),), "python", {}, {}), tmp_path)
    with (
        pytest.raises(UnavailableError, match="x ended"),
        LspOracle(Server("x", ("sh", "-c", "exit 0"), "python", {}, {}), tmp_path),
    ):
        pass


@pytest.mark.skipif(shutil.which(PROGRAM) is None, reason=f"there is no {PROGRAM}")
def test_the_real_server(tmp_path: Path) -> None:
    for path, text in FILES.items():
        (tmp_path / path).write_text(text, "utf-8")
    with LspOracle(pyright(None, None), tmp_path) as oracle:
        found = compare(sources(tmp_path, "python"), oracle)
    assert found.rows[-1].agreed == found.rows[-1].total == 9
    assert json.loads(json.dumps(as_json(found)))["references"] == 9
