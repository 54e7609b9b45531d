"""Comments that pin, in the languages' own comments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agentctx import vcs
from agentctx.config import RunOptions
from agentctx.pipeline.select import run
from agentctx.prompt import Task
from agentctx.repo.parse import parse
from agentctx.repo.pin_comments import comment_pins, marked
from tests.services import PlainServices
from tests.trees import Repo
from tests.unit_checks import source

PYTHON = '''import os

LIMIT = 3  # agentctx: pin


# agentctx: pin because every plugin calls it
def shown(a):
    """Says `# agentctx: pin` in its doc."""
    b = a + LIMIT
    return b


def hidden(a):
    if a:
        # agentctx: pin
        return 1
    return 2


TEXT = "no agentctx: pin here"
'''


def pinned_lines(path: str, text: str) -> set[int]:
    file = source(path, text)
    syntax = parse(file)
    pins = comment_pins({path: syntax}, {path: file.data})
    return {
        line for _, unit in pins for line in range(syntax.units[unit].lines.start, syntax.units[unit].lines.end + 1)
    }


def test_a_comment_pins_the_definition_that_it_stands_in_or_above() -> None:
    lines = PYTHON.splitlines()
    kept = {lines[n - 1].strip() for n in pinned_lines("a.py", PYTHON) if lines[n - 1].strip()}
    assert {"LIMIT = 3  # agentctx: pin", "def shown(a):", "b = a + LIMIT", "return b"} <= kept
    assert {"def hidden(a):", "return 2", "return 1"} <= kept
    assert "import os" not in kept
    assert 'TEXT = "no agentctx: pin here"' not in kept


@pytest.mark.parametrize(
    ("path", "text", "inside", "outside"),
    [
        ("a.go", "package a\n\n// agentctx: pin\nfunc B() int {\n\treturn 1\n}\n\nfunc C() {}\n", 5, 8),
        ("a.ts", "/* agentctx: pin */\nexport function b() {\n  return 1\n}\n\nfunction c() {}\n", 3, 6),
        ("A.java", "class A {\n  // agentctx: pin\n  int b() {\n    return 1;\n  }\n\n  void c() {}\n}\n", 4, 7),
        ("a.rs", "// agentctx: pin\nfn b() -> i32 {\n    1\n}\n\nfn c() {}\n", 3, 6),
        ("a.sql", "-- agentctx: pin\nselect 1;\n\n\nselect 2;\n", 2, 99),
        ("a.toml", "[a]\nx = 1\n\n[b]  # agentctx: pin\ny = 2\n", 5, 1),
    ],
)
def test_in_every_languages_own_comments(path: str, text: str, inside: int, outside: int) -> None:
    lines = pinned_lines(path, text)
    assert inside in lines
    assert outside not in lines


def test_a_whole_file() -> None:
    assert pinned_lines("a.py", "# agentctx: pin file\nx = 1\n\n\ndef f():\n    pass\n") == set(range(1, 7))


@pytest.mark.parametrize("text", ["x = 'agentctx: pin'\n", "# agentctx: pinned\n", "# say `# agentctx: pin`\n"])
def test_what_only_speaks_of_it_pins_nothing(text: str) -> None:
    assert list(marked("a.py", text.encode())) == []


def test_a_marked_definition_is_kept_whatever_the_ranking_says(repo: Callable[[str], Repo]) -> None:
    leap = repo("leap_year")
    (leap.root / "far.py").write_text("# agentctx: pin\ndef nothing_to_do_with_it():\n    return 'kept'\n")
    found = run("select", leap.root, Task(request="is_leap is wrong"), RunOptions(budget=700), PlainServices())
    rows = [row for row in found.report.units if row.path == "far.py" and "user" in row.pins]
    assert {row.symbol for row in rows} == {"far.py::nothing_to_do_with_it"}
    assert b"return 'kept'" in found.text.text


def test_git_finds_marked_files_untracked_ones_too(tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    repo.git("init", "-q", "-b", "main")
    repo.commit({"a b.py": "# agentctx: pin\n", "c.py": "x = 1\n"})
    assert vcs.matching_files(tmp_path, "agentctx: pin") == ["a b.py"]
    (tmp_path / "new.py").write_text("# agentctx: pin\n")
    assert vcs.matching_files(tmp_path, "agentctx: pin") == ["a b.py", "new.py"]
    assert vcs.matching_files(tmp_path, "nothing of the kind") == []
    with pytest.raises(vcs.GitError):
        vcs.matching_files(tmp_path.parent, "x")
