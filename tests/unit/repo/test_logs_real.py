"""Logs that the real pytest writes, in every traceback style."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentctx.prompt import Evidence
from agentctx.repo.logs import read_logs

CALC = """\
class Calc:
    def div(self, a, b):
        if b is None:
            raise ValueError("b")
        return a / b


def outer(a, b):
    try:
        return Calc().div(a, b)
    except ZeroDivisionError as error:
        raise RuntimeError("bad [x] - y") from error
"""
TESTS = """\
import unittest
import pytest
from pkg.calc import outer

@pytest.fixture
def broken():
    raise KeyError("nope")

@pytest.mark.parametrize("a", ["a - b]", "x::y", "sp ace", "nl\\nq"])
def test_param(a):
    assert a == 3

class TestX:
    class TestIn:
        def test_in(self):
            outer(1, 0)
    def test_none(self):
        print("captured here")
        outer(1, None)

def test_fix(broken):
    pass

def test_good():
    pass

def test_group():
    raise ExceptionGroup("many", [KeyError("one"), ValueError("two")])

class TestU(unittest.TestCase):
    def test_u(self):
        self.assertEqual({"a": 1}, {"a": 2})

def test_recursion():
    def f(): return f()
    f()
"""
FAILING = {
    "tests/test_calc.py::test_param[a - b]]",
    "tests/test_calc.py::test_param[x::y]",
    "tests/test_calc.py::test_param[sp ace]",
    "tests/test_calc.py::test_param[nl\\nq]",
    "tests/test_calc.py::TestX::TestIn::test_in",
    "tests/test_calc.py::TestX::test_none",
    "tests/test_calc.py::test_fix",
    "tests/test_calc.py::test_group",
    "tests/test_calc.py::TestU::test_u",
    "tests/test_calc.py::test_recursion",
    "tests/test_missing.py",
    "tests/test_syntax.py",
}
FILES = {
    "conftest.py": "import sys\nsys.path.insert(0, 'src')\n",
    "src/pkg/calc.py": CALC,
    "tests/test_calc.py": TESTS,
    "tests/test_missing.py": "import nothing_there\n",
    "tests/test_syntax.py": "def f(:\n    pass\n",
}
STYLES = ["long", "short", "line", "native", "auto", "no"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def run_pytest(root: Path, *options: str) -> bytes:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--continue-on-collection-errors", *options]
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, check=False, timeout=60)
    assert done.returncode == 1, done.stderr
    return done.stdout


def read(log: bytes) -> Evidence:
    return read_logs([("pytest.log", log)], sorted(FILES))


@pytest.fixture(scope="module")
def logs(project: Path) -> dict[str, bytes]:
    return {style: run_pytest(project, "-q", f"--tb={style}") for style in STYLES}


@pytest.fixture(scope="module")
def styles(logs: dict[str, bytes]) -> dict[str, Evidence]:
    return {style: read(log) for style, log in logs.items()}


@pytest.mark.parametrize("style", STYLES)
def test_finds_every_failing_test(styles: dict[str, Evidence], style: str) -> None:
    assert {test.id for test in styles[style].failing} == FAILING
    assert styles[style].notes == ()


@pytest.mark.parametrize("style", ["long", "short", "native", "auto"])
def test_frames_are_repository_paths_outermost_first(styles: dict[str, Evidence], style: str) -> None:
    places = [(f.path, f.line, f.function) for f in styles[style].frames if f.in_repo]
    start = places.index(("tests/test_calc.py", 19, "test_none"))
    assert places[start : start + 3] == [
        ("tests/test_calc.py", 19, "test_none"),
        ("src/pkg/calc.py", 10, "outer"),
        ("src/pkg/calc.py", 4, "div"),
    ]
    assert ("tests/test_calc.py", 7, "broken") in places
    assert ("tests/test_missing.py", 1, "<module>") in places
    assert any(place[:2] == ("tests/test_syntax.py", 1) for place in places)


@pytest.mark.parametrize("style", ["long", "short", "line", "native", "auto"])
def test_error_lines_and_mentions(styles: dict[str, Evidence], style: str) -> None:
    evidence = styles[style]
    expected = ["ModuleNotFoundError: No module named 'nothing_there'", "KeyError: 'nope'", "RuntimeError: bad [x] - y"]
    positions = [evidence.error_lines.index(line) for line in expected]
    assert positions == sorted(positions)
    assert evidence.mentions[0] == "nothing_there"
    assert not {"assert", "ValueError", "pytest", "self", "module"} & set(evidence.mentions)
    if style != "line":
        assert (
            evidence.mentions.index("div") < evidence.mentions.index("test_param") < evidence.mentions.index("TestIn")
        )


@pytest.mark.parametrize("style", ["long", "short", "native", "auto"])
def test_excerpt_keeps_failures_and_drops_noise(styles: dict[str, Evidence], style: str) -> None:
    lines = styles[style].excerpt.splitlines()
    assert "FAILED tests/test_calc.py::TestX::test_none" in lines
    assert "ERROR at setup of tests/test_calc.py::test_fix" in lines
    assert "captured here" in lines
    assert sum("test_param[" in line for line in lines) == 1
    assert "[... 3 more failures of test_param at the same place: [x::y], [sp ace], [nl\\nq]]" in lines
    assert not any("FFF" in line or "_pytest/" in line or "short test summary" in line for line in lines)


def test_the_diff_belongs_to_the_error(styles: dict[str, Evidence]) -> None:
    for style in ("long", "short", "native"):
        lines = styles[style].error_lines
        assert "AssertionError: {'a': 1} != {'a': 2}" in lines
        assert "- {'a': 1}" in lines
        assert "+ {'a': 2}" in lines


def test_verbose_colours_and_no_summary(project: Path) -> None:
    evidence = read(run_pytest(project, "-v", "-rN", "--color=yes", "--tb=no"))
    collected = {id for id in FAILING if "::" in id}
    assert {test.id for test in evidence.failing} == collected
    assert "\x1b" not in evidence.text


def test_only_titles_are_left(logs: dict[str, bytes]) -> None:
    """The log's end is missing, the summary with it."""
    log = logs["short"]
    evidence = read(log[: log.index(b"short test summary info")])
    assert {test.id for test in evidence.failing} == FAILING


def test_the_head_is_missing(logs: dict[str, bytes]) -> None:
    log = logs["long"]
    evidence = read(log[log.index(b"\n", log.index(b"TestX.test_none")) :])
    assert {test.id for test in evidence.failing} == FAILING
    assert ("src/pkg/calc.py", 4, "div") in [(f.path, f.line, f.function) for f in evidence.frames]
