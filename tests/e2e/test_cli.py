"""The command line: help, wrong usage, models that aren't there, and the small commands.

Most tests call the program in this process (`cli`); what depends on a process of its own has one (`agentctx`).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agentctx import __version__
from agentctx.cli.main import COMMANDS
from tests.e2e.command_line import TEST, Cli
from tests.trees import Repo

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
