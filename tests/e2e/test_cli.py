"""The command line: exit codes, messages, the JSON of every command, and that it says what it leaves out.

Most tests call the program in this process (`cli`); what depends on a process of its own has one (`agentctx`).
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentctx import __version__
from agentctx.cli.main import COMMANDS, invoke
from tests.reports import check_json
from tests.sarif import check_sarif
from tests.trees import ROOT, Repo

LOG = "fixtures/repos/leap_year/failure.log"
TEST = "tests/test_rules.py::test_1900_is_not_a_leap_year"


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Done]


@pytest.fixture
def cli(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command in this process: `cli(*ARGS, cwd=FOLDER, stdin=BYTES)`."""

    def run(*args: str | Path, cwd: Path | None = None, stdin: bytes = b"") -> Done:
        with monkeypatch.context() as patch:
            if cwd is not None:
                patch.chdir(cwd)
            patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            code = invoke([str(arg) for arg in args])
        out, err = capsysbinary.readouterr()
        return Done(code, out.decode(), err.decode())

    return run


def agentctx(*args: str | Path | bytes, cwd: Path, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """Run the program in a process of its own."""
    return subprocess.run([sys.executable, "-m", "agentctx", *args], cwd=cwd, capture_output=True, check=False, **more)


@pytest.fixture
def leap(repo: Callable[[str], Repo]) -> Repo:
    return repo("leap_year")


# What `almanac/grid.py` needs fits into the one and not into the other.
TIGHT = ("--focus", "almanac/grid.py", "--budget", "280")
ROOMY = ("--focus", "almanac/grid.py", "--budget", "9000")


@pytest.fixture
def log() -> Path:
    return ROOT / LOG


# ---------------------------------------------------------------- help


@pytest.mark.parametrize(
    "command",
    ["", *COMMANDS, "models fetch", "models list", "models check", "cache show", "cache clear", "config show"],
)
def test_help(cli: Cli, command: str) -> None:
    done = cli(*command.split(), "-h")
    assert done.code == 0
    assert done.out.startswith(f"Usage: agentctx {command}".rstrip())
    assert cli(*command.split(), "--help").out == done.out


def test_version(cli: Cli) -> None:
    assert cli("--version").out == f"agentctx, version {__version__}\n"


def test_the_help_names_every_command_and_exit_code(cli: Cli) -> None:
    out = cli("-h").out
    assert all(f"  {name} " in out for name in COMMANDS)
    for code in (
        "0 ok",
        "1 findings",
        "2 usage",
        "3 conflict",
        "4 an engine or a model",
        "70 a bug",
        "130 interrupted",
    ):
        assert code in " ".join(out.split())


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["selct"], "No such command 'selct'"),
        (["select", "--budgt", "3"], "--budgt"),
        (["select", "--budget", "many"], "'many' is not a valid integer"),
        (["select", "--budget", "0"], "--budget is 0; the least is 1"),
        (["select", "--keep", "1.5"], "--keep is 1.5; the most is 1"),
        (["select", "--keep", "nan"], "must be a finite number"),
        (["select", "--format", "xml"], "'xml' is not one of 'text', 'json'"),
        (["select", "--on-omission", "cry"], "'cry' is not one of"),
        (["select", "--budget", "9", "--keep", "0.5"], "'budget' and 'keep' contradict each other"),
        (["select", "--force-sparse", "--force-dense"], "contradict each other"),
        (["select", "a", "b"], "Got unexpected extra argument (b)"),
        (["select", "--repo", "no/such"], "there is no folder 'no/such'"),
        (["select", "--repo", "README.md"], "'README.md' is not a folder"),
        (["select", "--log", "no.log"], "can't read the log 'no.log': No such file or directory"),
        (["select", "--log", "almanac"], "can't read the log 'almanac': Is a directory"),
        (["select", "--log", "-", "--log", "-"], "--log - is given twice"),
        (["select", "--test", "no.py"], "test file 'no.py' is not in the repository"),
        (["select", "--test", "tests/test_rules.py::test_no"], "no test 'test_no' in tests/test_rules.py"),
        (["select", "--test", "../x.py"], "lies outside of the repository"),
        (["select", "--focus", "almanac/rules.py#no"], "no definition 'no' in almanac/rules.py"),
        (["select", "--focus", "almanac/rules.py:999"], "there is no line 999"),
        (["select", "--pin", "no.py"], "pin 'no.py': not an indexed file"),
        (["check"], "nothing to check"),
        (["check", "--staged", "--since", "HEAD"], "--staged and --since contradict each other"),
        (["check", "--since", "no-such-revision"], "there is no revision 'no-such-revision'"),
        (["edit"], "nothing to do"),
        (["edit", "x", "--diff", "--apply"], "--diff and --apply contradict each other"),
        (["edit", "x", "--samples", "3"], "--samples above 1 needs --temperature above 0"),
        (["cache", "clear", "everything"], "'everything' is not one of"),
    ],
)
def test_usage_errors(cli: Cli, leap: Repo, args: list[str], said: str) -> None:
    done = cli(*args, cwd=leap.root)
    assert done.code == 2, done.err
    assert said in done.err
    assert done.out == ""
    assert "Traceback" not in done.err


@pytest.mark.parametrize("name", ["agentctx.toml", "pyproject.toml"])
def test_an_unknown_key_in_a_file(cli: Cli, leap: Repo, name: str) -> None:
    text = "[tool.agentctx]\nbudgit = 1\n" if name == "pyproject.toml" else "budgit = 1\n"
    (leap.root / name).write_text(text)
    done = cli("select", "x", cwd=leap.root)
    assert done.code == 2
    assert f"unknown option 'budgit' in {leap.root / name}" in done.err
    assert "did you mean 'budget'?" in done.err


def test_environment_variables_are_heard_and_flags_are_stronger(
    cli: Cli, leap: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTCTX_BUDGET", "700")
    assert cli("select", "x", "--format", "json", cwd=leap.root).json["budget"]["limit"] == 700
    assert cli("select", "x", "--budget", "900", "--format", "json", cwd=leap.root).json["budget"]["limit"] == 900


# ---------------------------------------------------------------- select and pack


def test_select_text(cli: Cli, leap: Repo, log: Path) -> None:
    done = cli("select", "fix it", "--log", log, "--budget", "1200", cwd=leap.root)
    assert done.code == 0, done.err
    assert done.err == ""
    lines = done.out.splitlines()
    assert lines[0].startswith("kept ")
    assert lines[1] == "mode text: no drafter (--drafter none): units are kept by rank, the prompt is contiguous"
    assert "almanac/rules.py" in lines
    assert any(line.startswith("omission check: ") for line in lines)
    assert lines[-1].startswith("seconds: scan ")


def test_select_json(cli: Cli, leap: Repo, log: Path) -> None:
    done = cli("select", "fix it", "--log", log, "--test", TEST, "--budget", "1200", "--format", "json", cwd=leap.root)
    assert done.code == 0, done.err
    check_json(done.json)
    data = done.json
    assert data["command"] == "select"
    assert data["repo"] == {"root": str(leap.root), "head": leap.git("rev-parse", "HEAD").strip(), "dirty": False}
    assert data["task"]["failing_tests"] == ["tests/test_rules.py::test_1900_is_not_a_leap_year"]
    assert data["budget"]["kept"] <= data["budget"]["limit"] == 1200
    assert data["budget"]["window"] == 2400
    assert all(unit["kept"] for unit in data["units"])
    assert {"scan", "index", "evidence", "rank", "pack", "pins", "select"} <= set(data["timings"])
    assert data["cache"]["index"] == "cold"
    kept = {(unit["path"], unit["symbol"]) for unit in data["units"]}
    assert ("almanac/rules.py", "almanac/rules.py::is_leap") in kept


def test_all_units_lists_the_dropped_ones(cli: Cli, leap: Repo, log: Path) -> None:
    args = ("select", "x", "--log", log, "--budget", "600", "--format", "json")
    kept, everything = (cli(*args, *more, cwd=leap.root).json for more in ((), ("--all-units",)))
    check_json(everything)
    assert [unit for unit in everything["units"] if unit["kept"]] == kept["units"]
    assert any(not unit["kept"] and unit["tier"] is None for unit in everything["units"])


def test_the_second_run_is_warm_and_the_same(cli: Cli, leap: Repo, log: Path) -> None:
    args = ("select", "x", "--log", log, "--budget", "900", "--all-units", "--format", "json")
    first, second = (cli(*args, cwd=leap.root).json for _ in range(2))
    assert (first.pop("cache")["index"], second.pop("cache")["index"]) == ("cold", "warm")
    del first["timings"], second["timings"]
    assert first == second


def test_no_cache(cli: Cli, leap: Repo, own_world: Path) -> None:
    data = cli("select", "x", "--no-cache", "--format", "json", cwd=leap.root).json
    assert data["cache"]["index"] == "off"
    check_json(data)
    assert not (own_world / "cache" / "index.sqlite3").exists()


def test_pack_prints_the_prompt_and_says_the_rest_beside_it(cli: Cli, leap: Repo, log: Path) -> None:
    done = cli("pack", "fix it", "--log", log, "--budget", "1200", cwd=leap.root)
    assert done.code == 0, done.err
    assert "def is_leap" in done.out
    assert "Request:\nfix it\n" in done.out
    assert "lines left out ..." in done.out
    assert done.err.startswith("kept ")
    assert "omission check: " in done.err
    data = cli("pack", "fix it", "--log", log, "--budget", "1200", "--format", "json", cwd=leap.root).json
    check_json(data)
    assert data["prompt"] == done.out


def test_kept_is_the_count_of_the_whole_prompt(cli: Cli, leap: Repo, log: Path, own_world: Path) -> None:
    from agentctx.models.counting import tokenizer_for

    data = cli("pack", "x", "--log", log, "--budget", "900", "--format", "json", cwd=leap.root).json
    tokenizer = tokenizer_for(None, None, own_world / "cache")
    assert tokenizer.count_batch([data["prompt"]]) == [data["budget"]["kept"]]
    assert data["budget"]["tokenizer"] == tokenizer.name == "estimate"


@pytest.mark.parametrize("mode", ["reduce", "raise", "dense"])
def test_over_budget(cli: Cli, leap: Repo, log: Path, mode: str) -> None:
    """The pins (everything is a target) need more than there is."""
    focus = ("--focus", "almanac/day.py", "--focus", "almanac/rules.py")
    args = ("pack", "x", "--log", log, *focus, "--budget", "500", "--over-budget", mode, "--format", "json")
    done = cli(*args, cwd=leap.root)
    assert done.code == 0, done.err
    check_json(done.json)
    budget = done.json["budget"]
    assert (budget["kept"] <= 500) == (mode == "reduce")
    assert any(finding["code"] == "budget" for finding in done.json["findings"])


def advised_budget(done: Done) -> int:
    return int(done.err.rsplit("--budget ", 1)[1].split()[0].rstrip(","))


def test_over_budget_may_fail(cli: Cli, leap: Repo, log: Path) -> None:
    focus = ("--focus", "almanac/day.py", "--focus", "almanac/rules.py")
    done = cli("pack", "x", "--log", log, *focus, "--budget", "500", "--over-budget", "fail", cwd=leap.root)
    assert done.code == 2
    assert "the pins need" in done.err
    assert "give at least --budget" in done.err
    assert done.out == ""
    need = advised_budget(done)
    assert (
        cli("pack", "x", "--log", log, *focus, "--budget", str(need), "--over-budget", "fail", cwd=leap.root).code == 0
    )


def test_a_budget_below_what_is_never_dropped(cli: Cli, leap: Repo) -> None:
    """A larger budget packs more, and more may have to be kept then: the advice is a budget that was tried."""
    ask = "please make this right " * 9
    done = cli("select", ask, "--budget", "40", cwd=leap.root)
    assert done.code == 2
    assert "limit is 40" in done.err
    need = advised_budget(done)
    assert need > 40
    assert cli("select", ask, "--budget", str(need), cwd=leap.root).code == 0


def test_keep_is_a_share_of_the_window(cli: Cli, leap: Repo, log: Path) -> None:
    data = cli("select", "x", "--log", log, "--keep", "0.5", "--window", "1500", "--format", "json", cwd=leap.root).json
    budget = data["budget"]
    assert budget["limit"] == -(-budget["packed"] // 2)
    assert budget["kept"] <= budget["limit"]


def test_on_omission_fail(cli: Cli, leap: Repo, log: Path) -> None:
    args = ("select", "x", "--log", log, *TIGHT, "--on-omission")
    data = cli(*args, "flag", "--format", "json", cwd=leap.root)
    errors = [omission for omission in data.json["omissions"] if omission["severity"] == "error"]
    assert data.code == 0
    assert errors, "the budget is too large for this test"
    assert cli(*args, "fail", cwd=leap.root).code == 1
    assert cli("select", "x", "--log", log, *ROOMY, "--on-omission", "fail", cwd=leap.root).code == 0


def test_pins_of_the_user_are_kept(cli: Cli, leap: Repo) -> None:
    data = cli(
        "select", "x", "--pin", "almanac/grid.py#grid", "--budget", "700", "--format", "json", cwd=leap.root
    ).json
    pinned = [unit["path"] for unit in data["units"] if "user" in unit["pins"]]
    assert pinned
    assert set(pinned) == {"almanac/grid.py"}


def test_from_a_folder_inside(cli: Cli, leap: Repo) -> None:
    """Paths may be given from where one stands; those of the report are from the root."""
    data = cli("select", "--test", "test_rules.py", "--format", "json", cwd=leap.root / "tests").json
    assert data["repo"]["root"] == str(leap.root)
    assert data["task"]["tests"] == ["tests/test_rules.py"]


# ---------------------------------------------------------------- logs


def test_a_log_from_standard_input(cli: Cli, leap: Repo, log: Path) -> None:
    data = cli("select", "x", "--log", "-", "--format", "json", cwd=leap.root, stdin=log.read_bytes()).json
    assert data["task"]["logs"] == ["-"]
    assert data["task"]["failing_tests"] == ["tests/test_rules.py::test_1900_is_not_a_leap_year"]


def test_a_log_without_a_known_frame(cli: Cli, leap: Repo) -> None:
    text = b'Traceback (most recent call last):\n  File "/elsewhere/x.py", line 3, in f\n    g()\nValueError: 3\n'
    done = cli("select", "x", "--log", "-", "--format", "json", cwd=leap.root, stdin=text)
    assert done.code == 0
    notes = [finding["message"] for finding in done.json["findings"] if finding["severity"] == "note"]
    assert any("no frame inside the repository" in note for note in notes)


@pytest.mark.parametrize("text", [b"", b"\0\xff\xfe" * 300, b"nothing to see\n", b"\xe9t\xe9 \x1b[31mred\x1b[0m\n"])
def test_logs_that_say_nothing(cli: Cli, leap: Repo, text: bytes) -> None:
    done = cli("select", "x", "--log", "-", "--format", "json", cwd=leap.root, stdin=text)
    assert done.code == 0, done.err
    check_json(done.json)
    assert any(finding["message"].startswith("-: ") for finding in done.json["findings"])


def test_a_parameter_that_is_not_known(cli: Cli, leap: Repo) -> None:
    done = cli("select", "--test", f"{TEST}[1900]", "--format", "json", cwd=leap.root)
    assert done.code == 0
    assert any("the whole function stands for it" in finding["message"] for finding in done.json["findings"])


# ---------------------------------------------------------------- trees


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
    from agentctx.pipeline import select
    from agentctx.pipeline.services import Clock
    from agentctx.prompt import Task
    from agentctx.repo.pack import Frame
    from tests.services import PlainServices

    task = Task(request="is_leap is wrong")
    understood = select.understand(leap.root, task, PlainServices(), Clock())
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


# ---------------------------------------------------------------- models that aren't there


def test_an_unknown_model(cli: Cli, leap: Repo) -> None:
    for flag in ("--model", "--drafter"):
        done = cli("select", "x", flag, "no-such-model", cwd=leap.root)
        assert done.code == 4, done.err
        assert "no-such-model" in done.err
        assert "smollm2" in done.err


def test_a_model_that_was_not_fetched(cli: Cli, leap: Repo) -> None:
    done = cli("select", "x", "--model", "smollm2", cwd=leap.root)
    assert done.code == 4
    assert "agentctx models fetch smollm2" in done.err
    done = cli("edit", "x", "--test", TEST, cwd=leap.root)
    assert done.code == 4
    assert "agentctx models fetch" in done.err


def test_a_damaged_model(cli: Cli, leap: Repo, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{")
    (folder / "tokenizer.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"\0" * 16)
    done = cli("select", "x", "--model", folder, cwd=leap.root)
    assert done.code == 4, done.err
    assert str(folder) in done.err


def test_a_tokenizer_that_is_none(cli: Cli, leap: Repo, tmp_path: Path) -> None:
    for text in (None, "", "{}"):
        file = tmp_path / "tokenizer.json"
        if text is not None:
            file.write_text(text)
        done = cli("select", "x", "--tokenizer", file, cwd=leap.root)
        assert done.code == 4, done.err
        assert str(file) in done.err


# ---------------------------------------------------------------- check


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


# ---------------------------------------------------------------- cache, config, doctor


def test_cache(cli: Cli, leap: Repo, own_world: Path) -> None:
    index = own_world / "cache" / "index.sqlite3"
    cli("select", "x", cwd=leap.root)
    assert index.exists()
    shown = cli("cache", "show").out
    assert shown.startswith(f"{own_world / 'cache'}\n")
    rows = cli("cache", "show", "--format", "json").json
    assert rows["schema_version"] == 1
    assert rows["parts"]["index"]["bytes"] > index.stat().st_size > 0
    assert [tree["root"] for tree in rows["trees"]] == [str(leap.root.resolve())]
    assert str(leap.root.resolve()) in shown
    assert rows["parts"]["runs"] == {"path": str(own_world / "cache" / "runs"), "bytes": 0}
    done = cli("cache", "clear")
    assert done.code == 0
    assert done.out.startswith("removed index: ")
    assert not index.exists()
    assert cli("cache", "show", "--format", "json").json["trees"] == []
    assert cli("cache", "clear", "runs", "logs").code == 0
    assert cli("select", "x", "--format", "json", cwd=leap.root).json["cache"]["index"] == "cold"


def test_config_show(cli: Cli, leap: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    (leap.root / "agentctx.toml").write_text('budget = 700\nprotect = ["a", "b"]\n')
    monkeypatch.setenv("AGENTCTX_SEED", "7")
    data = cli("config", "show", "--format", "json", cwd=leap.root).json
    own = str(leap.root / "agentctx.toml")
    assert data["root"] == str(leap.root)
    assert data["options"]["budget"] == {"value": 700, "source": own}
    assert data["options"]["seed"] == {"value": 7, "source": "AGENTCTX_SEED"}
    assert data["options"]["fail_on"] == {"value": "error", "source": "default"}
    lines = [line.split() for line in cli("config", "show", cwd=leap.root).out.splitlines()]
    assert ["budget", "700", own] in lines
    assert ["protect", "a,", "b", own] in lines
    assert ["model", "-", "default"] in lines


def test_doctor(cli: Cli, leap: Repo) -> None:
    done = cli("doctor", "--format", "json", cwd=leap.root)
    rows = {row["name"]: row for row in done.json["rows"]}
    assert done.json["schema_version"] == 1
    assert (rows["agentctx"]["status"], rows["git"]["status"], rows["cache"]["status"]) == ("pass", "pass", "pass")
    assert (rows["model"]["status"], rows["model"]["hint"]) == ("warn", "agentctx models fetch smollm2")
    assert {row["status"] for row in done.json["rows"]} <= {"pass", "warn", "fail"}
    assert done.code == 0
    text = cli("doctor", cwd=leap.root)
    assert text.code == 0
    assert text.out.startswith("pass  agentctx ")


def test_doctor_finds_what_is_wrong(cli: Cli, leap: Repo) -> None:
    (leap.root / "agentctx.toml").write_text("budgit = 1\n")
    done = cli("doctor", cwd=leap.root)
    assert done.code == 1
    assert "fail  options      unknown option 'budgit'" in done.out


# ---------------------------------------------------------------- processes

HEAVY = ("torch", "transformers", "numpy", "tree_sitter", "pygls", "lsprotocol", "tokenizers", "rich", "git", "sqlite3")


@pytest.mark.parametrize(
    ("code", "banned"),
    [
        ("import agentctx", (*HEAVY, "click")),
        ("from agentctx.cli.main import invoke; invoke(['-h'])", HEAVY),
        ("from agentctx.cli.main import invoke; invoke(['select', '-h'])", ("torch", "transformers", "tree_sitter")),
        (
            "from agentctx.cli.main import invoke; assert invoke(['select', 'x', '--drafter', 'none']) == 0",
            ("torch", "transformers", "safetensors", "gguf", "pygls", "lsprotocol", "rich", "httpx"),
        ),
        (
            "from agentctx.cli.main import invoke; assert invoke(['check', '--staged']) == 0",
            ("torch", "transformers", "safetensors", "gguf", "pygls", "lsprotocol", "rich", "tokenizers"),
        ),
    ],
    ids=["import", "help", "select-help", "select", "check"],
)
def test_what_is_imported(leap: Repo, code: str, banned: tuple[str, ...]) -> None:
    end = f"; import sys; print([name for name in {banned!r} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code + end], cwd=leap.root, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


def test_a_reader_that_goes_away(leap: Repo, log: Path) -> None:
    """As with `| head -1`."""
    command = [sys.executable, "-m", "agentctx", "pack", "x", "--log", str(log), "--budget", "20000"]
    with subprocess.Popen(command, cwd=leap.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        err = process.stderr.read()
        assert process.wait(30) == 0
    assert b"Traceback" not in err
    assert b"BrokenPipe" not in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(leap: Repo, tmp_path: Path, own_world: Path, number: signal.Signals) -> None:
    """While it reads the log: nothing is written and the exit code is 130."""
    fifo = tmp_path / "log"
    os.mkfifo(fifo)
    command = [sys.executable, "-m", "agentctx", "select", "x", "--log", str(fifo)]
    before = sorted(leap.root.rglob("*"))
    with subprocess.Popen(command, cwd=leap.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        writer = os.open(fifo, os.O_WRONLY)  # returns when the process has opened it, too
        process.send_signal(number)
        try:
            out, err = process.communicate(timeout=20)
        finally:
            process.kill()  # else leaving the block would wait for ever
            os.close(writer)
    assert process.returncode == 130, err
    assert err.strip() == b"agentctx: interrupted; nothing was left half done"
    assert out == b""
    assert sorted(leap.root.rglob("*")) == before
    assert not (own_world / "cache" / "logs").exists()


def test_a_bug_is_written_down(cli: Cli, leap: Repo, own_world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import click

    from agentctx.cli import select

    @click.command()
    def broken() -> None:
        raise RuntimeError("the impossible happened")

    monkeypatch.setattr(select, "select", broken)
    done = cli("select", cwd=leap.root)
    assert done.code == 70
    assert "agentctx: a bug: RuntimeError: the impossible happened" in done.err
    (file,) = (own_world / "cache" / "logs").iterdir()
    assert f"the details are in {file}" in done.err
    text = file.read_text("utf-8")
    assert "the impossible happened" in text
    assert "Traceback" in text
    assert "Traceback" not in done.err


def test_a_bug_without_a_place_to_write_it_down(
    cli: Cli, leap: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import click

    from agentctx.cli import select

    @click.command()
    def broken() -> None:
        raise RuntimeError("the impossible happened")

    monkeypatch.setattr(select, "select", broken)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AGENTCTX_CACHE_DIR", str(tmp_path / "file" / "cache"))
    done = cli("select", cwd=leap.root)
    assert done.code == 70
    assert "no log could be written" in done.err
    assert "Traceback" in done.err


def test_a_cache_that_cant_be_written(cli: Cli, leap: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is a help, not a need."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AGENTCTX_CACHE_DIR", str(tmp_path / "file" / "cache"))
    done = cli("select", "x", "--format", "json", cwd=leap.root)
    assert done.code == 0, done.err
    assert any("cache" in finding["message"] for finding in done.json["findings"])
    doctor = cli("doctor", "--format", "json", cwd=leap.root).json
    assert {row["name"]: row["status"] for row in doctor["rows"]}["cache"] == "warn"
