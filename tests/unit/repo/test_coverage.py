"""Coverage reports as the tools write them -> lines of the repository, per test where the report knows."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agentctx.config import RunOptions
from agentctx.errors import TaskError
from agentctx.pipeline.coverage import read_coverage
from agentctx.pipeline.services import Clock
from agentctx.pipeline.understand import understand
from agentctx.prompt import Task, TestRef
from agentctx.repo.coverage import Coverage, CoverageError, bits, read_json, read_lcov
from tests.services import PlainServices
from tests.trees import Repo

CALC = "def add(a, b):\n    return a + b\n\n\ndef div(a, b):\n    if b == 0:\n        return None\n    return a / b\n"
TESTS = """from pkg.calc import add, div


def test_add():
    assert add(1, 2) == 3


class TestDiv:
    def test_div(self):
        assert div(4, 2)

    def test_zero(self):
        assert div(4, 0) is None
"""
ADD, DIV, ZERO = (f"tests/test_calc.py::{name}" for name in ("test_add", "TestDiv.test_div", "TestDiv.test_zero"))
SOURCES = {"src/pkg/calc.py": CALC, "src/pkg/__init__.py": "", "tests/test_calc.py": TESTS}
DATA = {path: text.encode() for path, text in SOURCES.items()}
# the lines of calc.py that each context ran, as coverage.py 7.17 with --cov-context=test says it
CONTEXTS = {
    "": [1, 5],
    "tests/test_calc.py::test_add|run": [2],
    "tests/test_calc.py::TestDiv::test_div[1]|run": [6, 8],
    "tests/test_calc.py::TestDiv::test_div[2]|run": [6, 8],
    "tests/test_calc.py::TestDiv::test_zero|run": [6, 7],
}
DOTTED = {"": [1, 5], "test_calc.test_add": [2], "tests.test_calc.TestDiv.test_div": [6, 8]}


def report(contexts: dict[str, list[int]], path: str = "src/pkg/calc.py", missing: tuple[int, ...] = ()) -> bytes:
    lines: dict[str, list[str]] = {}
    for name, ran in contexts.items():
        for line in ran:
            lines.setdefault(str(line), []).append(name)
    entry = {"executed_lines": sorted(map(int, lines)), "missing_lines": list(missing), "contexts": lines}
    return json.dumps({"meta": {"format": 3, "show_contexts": True}, "files": {path: entry}}).encode()


def database(file: Path, path: str, contexts: dict[str, list[int]], *, arcs: bool = False) -> None:
    with closing(sqlite3.connect(file)) as base, base:
        base.executescript(
            "create table file (id integer primary key, path text); create table context (id integer primary key,"
            " context text); create table line_bits (file_id integer, context_id integer, numbits blob);"
            " create table arc (file_id integer, context_id integer, fromno integer, tono integer);"
        )
        base.execute("insert into file values (1, ?)", (path,))
        for number, (name, lines) in enumerate(contexts.items()):
            base.execute("insert into context values (?, ?)", (number, name))
            if arcs:
                pairs = zip([-1, *lines], [*lines, -1], strict=True)
                base.executemany("insert into arc values (1, ?, ?, ?)", [(number, *pair) for pair in pairs])
            else:
                blob = bytearray(max(lines) // 8 + 1)
                for line in lines:
                    blob[line // 8] |= 1 << line % 8
                base.execute("insert into line_bits values (1, ?, ?)", (number, bytes(blob)))


def read(root: Path, *names: str, tests: tuple[str, ...] = (ADD, DIV, ZERO)) -> Coverage:
    found, findings = read_coverage(root, names, DATA, tests)
    assert findings == ()
    assert found is not None
    return found


@pytest.mark.parametrize(
    "path", ["src/pkg/calc.py", "/builds/x/src/pkg/calc.py", r"C:\ci\src\pkg\calc.py", "pkg/calc.py"]
)
def test_json_with_contexts(tmp_path: Path, path: str) -> None:
    (tmp_path / "coverage.json").write_bytes(report(CONTEXTS, path, missing=(3,)))
    found = read(tmp_path)
    assert found.lines("src/pkg/calc.py") == {1, 2, 5, 6, 7, 8}
    assert found.lines("src/pkg/calc.py", [ADD]) == {2}
    assert found.lines("src/pkg/calc.py", [DIV, ZERO]) == {6, 7, 8}
    assert found.lines("gone.py", [DIV]) == frozenset()
    assert found.measured == {"src/pkg/calc.py": {1, 2, 3, 5, 6, 7, 8}}


def test_contexts_by_dotted_name(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_bytes(report(DOTTED))
    found = read(tmp_path, "c.json")
    assert {test: set(lines["src/pkg/calc.py"]) for test, lines in found.by_test.items()} == {ADD: {2}, DIV: {6, 8}}


@pytest.mark.parametrize("arcs", [False, True])
def test_a_database(tmp_path: Path, arcs: bool) -> None:
    database(tmp_path / ".coverage", "/home/me/x/src/pkg/calc.py", CONTEXTS, arcs=arcs)
    before = (tmp_path / ".coverage").read_bytes()
    found = read(tmp_path)
    assert found.lines("src/pkg/calc.py") == {1, 2, 5, 6, 7, 8}
    assert found.lines("src/pkg/calc.py", [ZERO]) == {6, 7}
    assert (tmp_path / ".coverage").read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [".coverage"]


def test_bits() -> None:
    assert bits(b"\x02\x00\x81") == [1, 16, 23]


LCOV = b"TN:\nSF:src/pkg/calc.py\nFN:1,add\nDA:1,1\nDA:2,3,abc\nDA:6,0\nDA:x,1\nLF:3\nend_of_record\n"
LCOV += b"TN:tests/test_calc.py::test_add\nSF:src/pkg/calc.py\nDA:2,1\nend_of_record\n"


def test_lcov(tmp_path: Path) -> None:
    (tmp_path / "coverage").mkdir()
    (tmp_path / "coverage/lcov.info").write_bytes(LCOV.replace(b"\n", b"\r\n"))
    found = read(tmp_path)
    assert found.lines("src/pkg/calc.py") == {1, 2}
    assert found.lines("src/pkg/calc.py", [ADD]) == {2}
    assert found.measured == {"src/pkg/calc.py": {1, 2, 6}}


def test_several_reports_add_up(tmp_path: Path) -> None:
    (tmp_path / "lcov.info").write_bytes(LCOV)
    (tmp_path / "coverage.json").write_bytes(report({"": [8], "tests/test_calc.py::TestDiv::test_zero|run": [7]}))
    found = read(tmp_path)
    assert found.lines("src/pkg/calc.py") == {1, 2, 7, 8}
    assert sorted(found.by_test) == [ZERO, ADD]


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"{}", b'{"files": [1]}', b'{"files": {"a": {}}}', b"[" * 100_000, b"\xff\0", b"text"]
)
def test_what_is_no_report(data: bytes, tmp_path: Path) -> None:
    for reader in (read_json, read_lcov):
        with pytest.raises(CoverageError):
            reader(data)
    (tmp_path / "coverage.json").write_bytes(data)
    found, [finding] = read_coverage(tmp_path, (), DATA, ())
    assert found is None
    assert (finding.severity, finding.path) == ("warning", "coverage.json")


def test_a_damaged_database_is_said(tmp_path: Path) -> None:
    (tmp_path / ".coverage").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    found, [finding] = read_coverage(tmp_path, (), DATA, ())
    assert found is None
    assert ".coverage was not used: it is not a database of coverage.py" in finding.message


def test_what_is_stale_is_said(tmp_path: Path) -> None:
    (tmp_path / "src/pkg").mkdir(parents=True)
    (tmp_path / "src/pkg/calc.py").write_text(CALC)
    (tmp_path / "coverage.json").write_bytes(report(CONTEXTS))
    os.utime(tmp_path / "coverage.json", (1, 1))
    found, [finding] = read_coverage(tmp_path, (), DATA, ())
    assert found is not None
    assert finding.message == "coverage of 1 files (src/pkg/calc.py): edited since, so its lines may be off"
    (tmp_path / "other.json").write_bytes(report({"": [1, 99]}))
    found, [finding] = read_coverage(tmp_path, ("other.json",), DATA, ())
    assert found is None
    assert "none of its 1 files is a file of this repository as it is now" in finding.message


def test_what_the_user_names(tmp_path: Path) -> None:
    (tmp_path / "coverage.json").write_bytes(report(CONTEXTS))
    assert read_coverage(tmp_path, ("none",), DATA, ()) == (None, ())
    with pytest.raises(TaskError, match=r"there is no coverage file 'gone\.json'"):
        read_coverage(tmp_path, ("gone.json",), DATA, ())


def test_shares_of_functions(empty: Repo) -> None:
    empty.commit(SOURCES)
    empty.write({".coverage.json": report(CONTEXTS, missing=(3,))})
    task = Task(tests=(TestRef("tests/test_calc.py", ("TestDiv", "test_zero")),))
    made = understand(empty.root, task, PlainServices(), Clock(), options=RunOptions(coverage=(".coverage.json",)))
    assert made.coverage is not None
    shares = made.coverage.shares(made.index.graph, made.located.failing_tests)
    assert shares == {"src/pkg/calc.py::div": pytest.approx(2 / 3)}
    assert set(made.coverage.shares(made.index.graph)) == {"src/pkg/calc.py::add", "src/pkg/calc.py::div"}
