"""Checks run in the worktree, whatever the user's environment would import."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from agentctx.edit.checks import CheckStatus, make_log, pytest_check, run_check, shell_check
from agentctx.edit.interpreter import find_python
from agentctx.errors import CheckInvalid, UnavailableError

TEST = "from pkg.mod import f\n\n\ndef test_f():\n    assert f() == 2\n"
USER = "def f():\n    return 1\n"
EDITED = "def f():\n    return 2\n"

PATH_STYLE = "{src}\n"
# What setuptools writes for an editable install: a finder behind the others; other builders put theirs in front.
FINDER = """\
import sys
from importlib.util import spec_from_file_location

class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "pkg":
            return spec_from_file_location(
                name, "{src}/pkg/__init__.py", submodule_search_locations=["{src}/pkg"])
        if name == "pkg.mod" and {whole}:
            return spec_from_file_location(name, "{src}/pkg/mod.py")
"""


@pytest.fixture
def venv(tree) -> Path:
    """The repository's .venv, which sees pytest of the Python that runs these tests."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tree.root / ".venv")], check=True)
    site = next((tree.root / ".venv/lib").glob("*/site-packages"))
    ours = next(path for path in map(Path, sys.path) if (path / "pytest").is_dir())
    (site / "base.pth").write_text(f"{ours}\n")
    return site


def layout(tree, src: str) -> None:
    tree.write(
        {".gitignore": ".venv/\n", f"{src}pkg/__init__.py": "", f"{src}pkg/mod.py": USER, "tests/test_m.py": TEST}
    )
    tree.commit()


def check_edited(tree, session, src: str, **more):
    """The check's result in a worktree where mod.py is edited."""
    python = find_python(tree.root, {}).path
    check = replace(pytest_check(python, ["tests/test_m.py::test_f"]), **more)
    with session.worktree() as place:
        (place.worktree / f"{src}pkg/mod.py").write_text(EDITED)
        result = run_check(check, place, session.environment)
    return result, check


@pytest.mark.parametrize(
    ("src", "style"),
    [
        *[("", style) for style in ("none", "path", "finder-behind", "finder-in-front", "finder-whole")],
        *[("src/", style) for style in ("none", "path", "finder-behind", "finder-in-front")],
        *[("packages/one/lib/", style) for style in ("none", "path", "finder-behind")],
    ],
)
def test_the_worktrees_code_is_what_runs(tree, venv: Path, src: str, style: str) -> None:
    layout(tree, src)
    place = str(tree.root / src).rstrip("/")
    if style == "path":
        (venv / "pkg.pth").write_text(PATH_STYLE.format(src=place))
    elif style != "none":
        (venv / "_finder.py").write_text(FINDER.format(src=place, whole=style == "finder-whole"))
        where = "append(" if style == "finder-behind" else "insert(0, "
        (venv / "pkg.pth").write_text(f"import _finder, sys; sys.meta_path.{where}_finder.Finder)\n")
    roots = ("packages/one/lib",) if src.startswith("packages") and style == "none" else ()
    with tree.session() as session:
        result, check = check_edited(tree, session, src, source_roots=roots)
    result.require_proof(check)
    assert result.status is CheckStatus.PASSED, result.output
    assert f"{src}pkg/mod.py" in result.origins.worktree
    assert "tests/test_m.py" in result.origins.worktree
    assert result.origins.user_tree == ()
    assert result.origins.n_processes == 1


def test_an_absolute_path_of_the_users_tree_is_redirected_too(tree, venv: Path) -> None:
    layout(tree, "")
    tree.write({"tests/test_m.py": f"import sys\nsys.path.insert(0, {str(tree.root)!r})\n{TEST}"})
    with tree.session() as session:
        result, check = check_edited(tree, session, "")
    result.require_proof(check)
    assert result.status is CheckStatus.PASSED, result.output


LOAD = """\
import importlib.util, sys
spec = importlib.util.spec_from_file_location("mod", {path!r})
mod = sys.modules["mod"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mod)
"""


def test_importing_the_users_tree_makes_the_check_invalid(tree, venv: Path) -> None:
    """A file that is loaded by its absolute path can't be redirected; it must be found out."""
    layout(tree, "")
    load = LOAD.format(path=str(tree.root / "pkg/mod.py"))
    tree.write({"tests/test_m.py": f"{load}\n\ndef test_f():\n    assert mod.f() == 1\n"})
    with tree.session() as session:
        result, check = check_edited(tree, session, "")
        assert result.status is CheckStatus.PASSED  # the user's code ran, so this proves nothing
        assert result.origins.user_tree == ("pkg/mod.py",)
        with pytest.raises(CheckInvalid, match=r"imported your own tree instead of the edited copy: pkg/mod\.py"):
            result.require_proof(check)


def test_a_child_process_counts_too(tree, venv: Path) -> None:
    layout(tree, "")
    load = LOAD.format(path=str(tree.root / "pkg/mod.py"))
    body = f"    subprocess.run([sys.executable, '-c', {load!r}])\n"
    tree.write({"tests/test_m.py": f"import subprocess, sys\n\ndef test_f():\n{body}"})
    with tree.session() as session:
        result, check = check_edited(tree, session, "")
        assert (result.status, result.origins.n_processes) == (CheckStatus.PASSED, 2)
        with pytest.raises(CheckInvalid):
            result.require_proof(check)


def test_a_python_that_ignores_the_environment_leaves_no_proof(tree, venv: Path) -> None:
    layout(tree, "")
    tree.write({"tests/test_m.py": "def test_f(): pass\n"})
    python = find_python(tree.root, {}).path
    check = pytest_check(python, ["tests/test_m.py"])
    isolated = replace(check, command=(python, "-I", *check.command[1:]), env={"PYTEST_ADDOPTS": ""})
    with tree.session() as session, session.worktree() as place:
        result = run_check(isolated, place, session.environment)
    if result.status is CheckStatus.PASSED:
        with pytest.raises(CheckInvalid, match="no proof"):
            result.require_proof(isolated)
    else:  # pytest can't load our plugin
        assert "agentctx_origin" in result.output


def test_unittest_and_an_own_sitecustomize(tree, venv: Path) -> None:
    layout(tree, "src/")
    (venv / "pkg.pth").write_text(f"{tree.root}/src\n")
    (venv / "sitecustomize.py").write_text("import os; os.environ['SEEN'] = 'yes'\n")
    tree.write({"t.py": "import os, unittest, pkg.mod\nclass T(unittest.TestCase):\n    def test(self):\n"
                "        self.assertEqual((pkg.mod.f(), os.environ['SEEN']), (2, 'yes'))\n"})  # fmt: skip
    check = shell_check(".venv/bin/python -m unittest t")
    with tree.session() as session, session.worktree() as place:
        assert run_check(check, place, session.environment).status is CheckStatus.FAILED
        (place.worktree / "src/pkg/mod.py").write_text(EDITED)
        result = run_check(check, place, session.environment)
    assert result.status is CheckStatus.PASSED, result.output
    assert result.origins.worktree == ("src/pkg/__init__.py", "src/pkg/mod.py", "t.py")
    assert result.origins.user_tree == ()


@pytest.mark.parametrize(
    ("ids", "status"),
    [
        (["t.py::test_ok"], "passed"),
        (["t.py::test_bad"], "failed"),
        (["t.py::test_none"], "error"),
        (["none.py"], "error"),
        (["empty.py"], "error"),
        (["--no-such-flag"], "error"),
        (["broken.py"], "failed"),
        (["broken.py::test_x"], "failed"),
        (["dies.py"], "failed"),
    ],
)
def test_what_pytests_exit_codes_mean(tree, ids: list[str], status: str) -> None:
    tree.write({
        "t.py": "def test_ok(): pass\n\ndef test_bad(): assert 0\n", "empty.py": "\n",
        "broken.py": "from nowhere import x\n\ndef test_x(): pass\n",
        "dies.py": "import os\n\ndef test_x(): os.kill(os.getpid(), 11)\n",
    })  # fmt: skip
    with tree.session() as session, session.worktree() as place:
        result = run_check(pytest_check(sys.executable, ids), place, session.environment)
    assert result.status == status, result.output


@pytest.mark.parametrize(
    ("line", "status", "code"),
    [("true", "passed", 0), ("exit 3", "failed", 3), ("no-such-command-here", "error", 127), ("./a.txt", "error", 126)],
)
def test_shell_checks(tree, line: str, status: str, code: int) -> None:
    tree.write({"a.txt": "not executable\n"})
    with tree.session() as session, session.worktree() as place:
        result = run_check(shell_check(line), place, session.environment)
        missing = run_check(pytest_check("/no/such/python", []), place, session.environment)
    assert (result.status, result.exit_code) == (status, code)
    assert missing.status is CheckStatus.ERROR
    assert "No such file" in missing.output


def test_output_names_the_users_tree_and_is_cut_from_the_front(tree) -> None:
    with tree.session() as session, session.worktree() as place:
        result = run_check(shell_check("seq 30000; pwd"), place, session.environment)
    assert result.output.endswith(f"30000\n{tree.root}\n")
    assert len(result.output) <= 64 * 1024 + 200


def test_a_timeout_ends_the_whole_process_group(tree, tmp_path: Path) -> None:
    line = f"trap '' TERM; sleep 60 & echo $! > {tmp_path}/pid; wait; sleep 60"
    started = time.monotonic()
    with tree.session() as session, session.worktree() as place:
        result = run_check(shell_check(line, timeout=0.5), place, session.environment)
    assert result.status is CheckStatus.TIMEOUT
    assert time.monotonic() - started < 30
    _assert_gone(int((tmp_path / "pid").read_text()))


def test_children_left_behind_are_ended(tree, tmp_path: Path) -> None:
    with tree.session() as session, session.worktree() as place:
        run_check(shell_check(f"sleep 60 & echo $! > {tmp_path}/pid"), place, session.environment)
    _assert_gone(int((tmp_path / "pid").read_text()))


def test_ctrl_c_ends_the_check_and_removes_the_worktree(tree, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from agentctx.edit.session import edit_session\n"
        "from agentctx.edit.checks import run_check, shell_check\n"
        "with edit_session(Path(sys.argv[1]), Path(sys.argv[2]), {'PATH': '/usr/bin:/bin'}) as s, s.worktree() as w:\n"
        f"    run_check(shell_check('echo $$ > {tmp_path}/pid; sleep 60'), w, s.environment)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(tree.root), str(tree.cache)], stderr=subprocess.DEVNULL)
    try:
        _wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
        child.send_signal(signal.SIGINT)
        assert child.wait(20) != 0
    finally:
        child.kill()
        child.wait()
    _assert_gone(int((tmp_path / "pid").read_text()))
    assert list((tree.cache / "worktrees").glob("*/*")) == []


def _wait_for(condition) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def _assert_gone(pid: int) -> None:
    def gone() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    if Path("/proc/self/stat").exists():
        _wait_for(gone)
    else:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_make_log_is_what_pytest_says(tree) -> None:
    tree.write({"m.py": USER, "test_m.py": TEST.replace("pkg.mod", "m")})
    with tree.session() as session, session.worktree() as place:
        log = make_log(sys.executable, ["test_m.py::test_f"], place, session.environment)
        assert str(place.worktree).encode() not in log
    assert b"test_m.py:5: AssertionError" in log
    assert b"FAILED test_m.py::test_f" in log


# ---------------------------------------------------------------- which Python


def test_the_repositorys_python_comes_before_path(tree, venv: Path) -> None:
    found = find_python(tree.root, {"PATH": os.environ["PATH"]})
    assert (found.path, found.source) == (str(tree.root / ".venv/bin/python"), ".venv")


def test_a_python_without_pytest_is_passed_over_unless_named(tree, venv: Path) -> None:
    (venv / "base.pth").unlink()
    bare = str(tree.root / ".venv/bin/python")
    found = find_python(tree.root, {"PATH": str(Path(sys.executable).parent)})
    assert Path(found.path).parent == Path(sys.executable).parent
    with pytest.raises(UnavailableError, match="no Python with pytest") as caught:
        find_python(tree.root, {"AGENTCTX_PYTHON": bare, "PATH": str(Path(sys.executable).parent)})
    assert "AGENTCTX_PYTHON=PATH" in (caught.value.hint or "")
    assert find_python(tree.root, {"AGENTCTX_PYTHON": sys.executable}).source == "$AGENTCTX_PYTHON"
