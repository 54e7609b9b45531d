"""`agentctx select` and `pack`: exit codes, messages, JSON, and that they say what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.command_line import ROOMY, TEST, TIGHT, Cli, Done
from tests.reports import check_json
from tests.trees import Repo

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
