"""Repositories of all kinds, and files that can't be read as code."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.e2e.command_line import Cli, agentctx
from tests.reports import check_json
from tests.trees import Repo


def test_a_plain_folder_works(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(x):\n    return x\n")
    done = cli("select", "f is wrong", "--repo", tmp_path, "--format", "json")
    assert done.code == 0, done.err
    check_json(done.json)
    assert done.json["repo"] == {"root": str(tmp_path), "head": None, "dirty": False}


def test_a_change_needs_git(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(x):\n    return x\n")
    done = cli("check", "--staged", "--repo", tmp_path)
    assert done.code == 2
    assert "is not in a git repository" in done.err


def test_an_empty_repository(cli: Cli, empty: Repo) -> None:
    done = cli("select", "x", cwd=empty.root)
    assert done.code == 2
    assert "agentctx: " in done.err
    assert str(empty.root) in done.err


def test_files_that_cant_be_read_as_code(cli: Cli, leap: Repo) -> None:
    leap.write({
        "almanac/broken.py": "def f(:\n    return (\n\nclass X\n    pass\n",
        "almanac/blob.py": b"\0\1\2\3" * 100,
        "almanac/huge.py": "x = 1\n" * 600_000,
        "almanac/empty.py": "",
        "almanac/latin.py": b"# -*- coding: latin-1 -*-\nname = '\xe9t\xe9'\n",
        "almanac/bom.py": b"\xef\xbb\xbfx = 1\r\n",
    })  # fmt: skip
    done = cli("select", "days", "--format", "json", "--budget", "9000", cwd=leap.root)
    assert done.code == 0, done.err
    check_json(done.json)
    skipped = {row["path"]: row["reason"] for row in done.json["skipped"]}
    assert skipped["almanac/blob.py"] == "binary: it holds NUL bytes"
    assert skipped["almanac/huge.py"] == "too large: 3.4 MiB, the limit is 2 MiB"
    assert not {"almanac/broken.py", "almanac/latin.py", "almanac/bom.py", "almanac/empty.py"} & set(skipped)
    said = cli("select", "days", cwd=leap.root).out
    assert "almanac/blob.py: binary: it holds NUL bytes" in said


def test_names_and_words_of_all_kinds(leap: Repo) -> None:
    """Bytes that are no text, in the request and in file names."""
    leap.write({"größe 𝄞.py": "def size():\n    return 1\n", os.fsdecode(b"caf\xe9.py"): "x = 1\n"})
    args = ("select", b"caf\xe9 \xf0\x9d\x84\x9e size", "--focus", "größe 𝄞.py", "--format", "json")
    done = agentctx(*args, cwd=leap.root)
    assert done.returncode == 0, done.stderr.decode()
    data = json.loads(done.stdout)
    check_json(data)
    assert data["task"]["targets"] == ["größe 𝄞.py::size"]
    assert any("not valid UTF-8" in row["reason"] for row in data["skipped"])
    packed = agentctx("pack", b"caf\xe9", cwd=leap.root)
    assert packed.returncode == 0, packed.stderr.decode()


def test_output_where_the_terminal_knows_few_characters(leap: Repo) -> None:
    leap.write({"größe 𝄞.py": "def size():\n    return 1\n"})
    env = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = agentctx("select", "x", "--focus", "größe 𝄞.py", cwd=leap.root, env=env)
    assert done.returncode == 0, done.stderr.decode()
    assert "größe \\U0001d11e.py".encode("latin-1") in done.stdout
    done = agentctx("select", "x", "--focus", "größe 𝄞.py", "--format", "json", cwd=leap.root, env=env)
    assert json.loads(done.stdout)["task"]["focus"] == ["größe 𝄞.py"]


def test_a_file_that_vanishes_after_the_scan(leap: Repo) -> None:
    """Files are read once: what goes away later is not missed."""
    from agentctx.config import RunOptions
    from agentctx.pipeline import select, understand
    from agentctx.pipeline.services import Clock
    from agentctx.prompt import Task
    from agentctx.repo.pack import Frame
    from tests.services import PlainServices

    task = Task(request="is_leap is wrong")
    understood = understand.understand(leap.root, task, PlainServices(), Clock())
    for path in sorted((leap.root / "almanac").glob("*.py")):
        path.unlink()
    frame = Frame("s", "is_leap is wrong")
    outcome = select.select_for("select", understood, frame, RunOptions(), PlainServices(), Clock(), None)
    assert b"def is_leap" in outcome.text.text


def test_a_file_that_git_lists_and_is_gone(cli: Cli, leap: Repo) -> None:
    (leap.root / "almanac/grid.py").unlink()
    data = cli("select", "x", "--format", "json", cwd=leap.root).json
    reasons = {row["path"]: row["reason"] for row in data["skipped"]}
    assert reasons["almanac/grid.py"].startswith("vanished: ")
