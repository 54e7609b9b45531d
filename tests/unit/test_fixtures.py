"""The fixture projects are what their manifests say: right tests, one bug a case, logs of real runs."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from agentctx.repo.logs import read_logs

FIXTURES = Path(__file__).parents[2] / "fixtures"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_logs", FIXTURES / "make_logs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


fixtures = _load()
CASES = [pytest.param(case, id=case.id) for project in fixtures.projects() for case in fixtures.cases(project)]
_OUTCOME = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (\S+)", re.MULTILINE)


def outcomes(root: Path) -> dict[str, str]:
    """Outcome by node id of a whole run."""
    out = fixtures.run_pytest(root, ["-rA", "-q"]).stdout.decode()
    return {node: outcome for outcome, node in _OUTCOME.findall(out)}


def definition_is_there(root: Path, place: str) -> bool:
    path, _, symbol = place.partition("#")
    text = (root / path).read_text(encoding="utf-8-sig")
    name = re.escape(symbol.rpartition(".")[2])
    return re.search(rf"^\s*(?:def|class) {name}\b|^{name} = ", text, re.MULTILINE) is not None


def test_there_are_enough_projects() -> None:
    assert len(fixtures.projects()) >= 7


@pytest.mark.parametrize("project", fixtures.projects())
def test_failing_tests_fail_and_the_solution_mends_them(project: str, tmp_path: Path) -> None:
    root = fixtures.copy_project(project, tmp_path / project)
    cases = fixtures.cases(project)
    failing = {node for case in cases for node in case.failing}
    before = outcomes(root)
    assert {node for node, outcome in before.items() if outcome != "PASSED"} == failing
    assert set(before.values()) == {"PASSED", "FAILED"}
    for case in cases:
        subprocess.run(["git", "apply", str(case.solution)], cwd=root, check=True)
    assert outcomes(root) == dict.fromkeys(before, "PASSED")


@pytest.mark.parametrize("case", CASES)
def test_the_log_names_the_failing_tests_and_no_machine(case: fixtures.Case) -> None:  # type: ignore[name-defined]
    data = case.log.read_bytes()
    assert not re.search(rb"/(?:work|tmp|root|usr|var)/", data)
    paths = {path.relative_to(case.log.parent).as_posix() for path in case.log.parent.rglob("*.py")}
    evidence = read_logs(((case.log.name, data),), frozenset(paths))
    assert {test.id for test in evidence.failing} == set(case.failing)
    assert evidence.error_lines
    assert any(frame.in_repo for frame in evidence.frames)


@pytest.mark.parametrize("case", CASES)
def test_the_manifest_names_what_is_there(case: fixtures.Case) -> None:  # type: ignore[name-defined]
    root = case.log.parent
    places = (case.target, *case.callers, *case.interfaces)
    assert [place for place in places if not definition_is_there(root, place)] == []
    assert case.request
    assert case.target.partition("#")[0].encode() in case.solution.read_bytes()


def test_the_case_without_source_frames() -> None:
    (case,) = fixtures.cases("src_layout")
    log = case.log.read_text()
    assert "tests/test_quotes.py:" in log
    assert "src/tariff" not in log


def test_projects_are_copied_without_their_solution(tmp_path: Path) -> None:
    root = fixtures.copy_project("deep_tree", tmp_path / "copy")
    left = {path.name for path in root.iterdir()}
    assert left == {"README.md", "depot", "pyproject.toml", "tests"}
    assert len([path for path in root.rglob("*") if path.is_file()]) >= 40


def test_mixed_bytes_is_mixed() -> None:
    folder = FIXTURES / "repos" / "mixed_bytes" / "messwerk"
    sizes = (folder / "größen.py").read_bytes()
    assert sizes.startswith(b"\xef\xbb\xbf")
    assert sizes.count(b"\n") == sizes.count(b"\r\n")
    assert b"\n\t" in (folder / "umrechnung.py").read_bytes()
    assert not (folder / "zeichen.py").read_bytes().endswith(b"\n")
    with pytest.raises(UnicodeDecodeError):
        (folder / "altbestand.py").read_bytes().decode()
