"""`agentctx check`: of a task, of a change, in a hook."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.command_line import ROOMY, TIGHT, Cli
from tests.reports import check_json
from tests.sarif import check_sarif
from tests.trees import Repo


def test_check_of_a_task(cli: Cli, leap: Repo, log: Path) -> None:
    done = cli("check", "x", "--log", log, *TIGHT, cwd=leap.root)
    assert done.code == 1
    assert done.out.startswith("omission check: ")
    assert "  error   dropped " in done.out
    assert cli("check", "x", "--log", log, *TIGHT, "--fail-on", "never", cwd=leap.root).code == 0
    assert cli("check", "x", "--log", log, *ROOMY, cwd=leap.root).code == 0


@pytest.fixture
def changed(leap: Repo) -> Repo:
    """A staged change of a signature, whose callers are not in it."""
    path = leap.root / "almanac/rules.py"
    path.write_text(path.read_text().replace("def is_leap(year: int)", "def is_leap(year: int, calendar: str)"))
    leap.git("add", "-A")
    return leap


def test_check_of_a_change(cli: Cli, changed: Repo) -> None:
    done = cli("check", "--staged", cwd=changed.root)
    assert done.code == 1
    assert "error   signature-changed: almanac/rules.py:" in done.out
    assert "tests/test_rules.py:" in done.out
    assert cli("check", "--since", "HEAD", cwd=changed.root).code == 1
    assert cli("check", "--staged", "--fail-on", "never", cwd=changed.root).code == 0
    changed.git("reset", "-q", "--hard")
    done = cli("check", "--staged", cwd=changed.root)
    assert (done.code, done.out) == (0, "no findings\n")


def test_check_as_json_and_sarif(cli: Cli, changed: Repo, log: Path) -> None:
    for task in (("--staged",), ("x", "--log", str(log), *TIGHT)):
        done = cli("check", *task, "--format", "json", cwd=changed.root)
        assert done.code == 1
        check_json(done.json)
        done = cli("check", *task, "--format", "sarif", cwd=changed.root)
        assert done.code == 1
        check_sarif(done.json)
        assert {result["level"] for result in done.json["runs"][0]["results"]} >= {"error"}


def test_fail_on_from_a_file(cli: Cli, changed: Repo) -> None:
    (changed.root / "agentctx.toml").write_text('fail_on = "never"\n')
    assert cli("check", "--staged", cwd=changed.root).code == 0


def test_check_in_a_hook(changed: Repo) -> None:
    """git exports GIT_DIR and GIT_INDEX_FILE to hooks."""
    hook = changed.root / ".git/hooks/pre-commit"
    hook.write_text(f"#!/bin/sh\nexec {sys.executable} -m agentctx check --staged\n")
    hook.chmod(0o755)
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x"]
    done = subprocess.run(command, cwd=changed.root, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"signature-changed" in done.stdout + done.stderr
