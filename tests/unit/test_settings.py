"""Environment and files -> options: precedence, contradictions, and files that are not ours to judge."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from agentctx import settings
from agentctx.config import FailOn, Resolved
from agentctx.errors import ConfigError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


def load(root: Path | None, environment: Mapping[str, str] | None = None, **flags: object) -> Resolved:
    config = {"AGENTCTX_CONFIG_DIR": str(root / "user") if root else os.devnull}
    return settings.load(root, flags, {**config, **(environment or {})})


def write(root: Path, **files: str) -> None:
    names = {"own": "agentctx.toml", "project": "pyproject.toml", "user": "user/config.toml"}
    for name, text in files.items():
        path = root / names[name]
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_precedence_source_by_source(root: Path) -> None:
    write(root, own="budget = 4", project="[tool.agentctx]\nbudget = 5\n", user="budget = 6")
    seen = []
    given: dict[str, object] = {"budget": 2}
    environment = {"AGENTCTX_BUDGET": "3"}
    for take_away in (given, environment, root / "agentctx.toml", root / "pyproject.toml", root / "user/config.toml"):
        resolved = load(root, environment, **given)
        seen.append((resolved.options.budget, resolved.sources["budget"]))
        take_away.unlink() if isinstance(take_away, Path) else take_away.clear()
    assert seen == [
        (2, "flag"),
        (3, "AGENTCTX_BUDGET"),
        (4, str(root / "agentctx.toml")),
        (5, f"{root / 'pyproject.toml'} [tool.agentctx]"),
        (6, str(root / "user/config.toml")),
    ]
    assert load(root).sources["budget"] == "default"


def test_what_was_not_given_on_the_command_line_hides_nothing(root: Path) -> None:
    write(root, own='budget = 4\nprotect = ["a"]\ncache = false')
    options = load(root, budget=None, protect=(), cache=None).options
    assert (options.budget, options.protect, options.cache) == (4, ("a",), False)


@pytest.mark.parametrize(
    ("flags", "environment", "own", "expected"),
    [
        ({"budget": 9}, {}, "keep = 0.5", (9, None)),
        ({"keep": 0.5}, {}, "budget = 9", (None, 0.5)),
        ({}, {"AGENTCTX_BUDGET": "9"}, "keep = 0.5", (9, None)),
        ({}, {"AGENTCTX_KEEP": "0.5"}, "budget = 9", (None, 0.5)),
        ({"budget": 9}, {"AGENTCTX_KEEP": "0.5"}, "", (9, None)),
    ],
)
def test_a_budget_and_a_fraction_replace_each_other(
    root: Path, flags: dict[str, object], environment: dict[str, str], own: str, expected: tuple[object, object]
) -> None:
    write(root, own=own)
    resolved = load(root, environment, **flags)
    assert (resolved.options.budget, resolved.options.keep) == expected
    loser = "keep" if expected[1] is None else "budget"
    assert resolved.sources[loser] == "default"


def test_a_flag_for_sparse_takes_back_a_files_dense(root: Path) -> None:
    write(root, own="force_dense = true")
    options = load(root, force_sparse=True).options
    assert (options.force_sparse, options.force_dense) == (True, False)


@pytest.mark.parametrize(
    ("flags", "environment", "own", "where"),
    [
        ({"budget": 9, "keep": 0.5}, {}, "", "flag"),
        ({}, {"AGENTCTX_BUDGET": "9", "AGENTCTX_KEEP": "0.5"}, "", "AGENTCTX_BUDGET and AGENTCTX_KEEP"),
        ({}, {}, "budget = 9\nkeep = 0.5", "agentctx.toml"),
    ],
)
def test_contradictions_of_one_level_are_refused(
    root: Path, flags: dict[str, object], environment: dict[str, str], own: str, where: str
) -> None:
    write(root, own=own)
    with pytest.raises(ConfigError, match=r"'budget' and 'keep' contradict each other") as caught:
        load(root, environment, **flags)
    assert where in caught.value.message


@pytest.mark.parametrize(
    ("name", "text"),
    [("own", "budgett = 1"), ("project", "[tool.agentctx]\nbudgett = 1"), ("user", "budgett = 1")],
)
def test_unknown_keys_are_named_with_their_file(root: Path, name: str, text: str) -> None:
    write(root, **{name: text})
    with pytest.raises(ConfigError, match=r"unknown option 'budgett' in .*\.toml") as caught:
        load(root)
    assert caught.value.hint == "did you mean 'budget'?"


def test_a_bad_variable_is_called_by_its_name() -> None:
    with pytest.raises(ConfigError, match="'budget' in AGENTCTX_BUDGET is '0x10'"):
        load(None, {"AGENTCTX_BUDGET": "0x10"})


def test_an_empty_variable_is_not_given() -> None:
    assert load(None, {"AGENTCTX_MODEL": ""}).sources["model"] == "default"


def test_tables_of_others_are_left_to_them(root: Path) -> None:
    write(root, own='fail_on = "note"\n[runs.lint]\nrequest = "x"\n')
    assert load(root).options.fail_on is FailOn.NOTE


def test_a_project_file_that_does_not_name_us_is_not_parsed(root: Path) -> None:
    write(root, project="this is = = not TOML")
    assert load(root).sources["budget"] == "default"
    write(root, project="# tool.agentctx\nthis is = = not TOML")
    with pytest.raises(ConfigError, match=r"pyproject\.toml is not valid TOML"):
        load(root)


def test_a_table_that_is_none(root: Path) -> None:
    write(root, project="[tool]\nagentctx = 3  # tool.agentctx")
    with pytest.raises(ConfigError, match=r"\[tool.agentctx\] in .*pyproject.toml is not a table"):
        load(root)


def test_files_that_cant_be_read(root: Path) -> None:
    (root / "agentctx.toml").write_bytes(b"model = '\xff'")
    with pytest.raises(ConfigError, match=r"agentctx\.toml is not valid TOML"):
        load(root)


def test_folders_of_the_user(root: Path, own_world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    assert settings.cache_root({"AGENTCTX_CACHE_DIR": "/c"}) == Path("/c")
    assert settings.cache_root({"AGENTCTX_CACHE_DIR": "~/c"}) == own_world / "c"
    assert settings.cache_root({"AGENTCTX_CACHE_DIR": "c"}) == root / "c"
    assert settings.cache_root({}).name == "agentctx"
    assert settings.user_file({"AGENTCTX_CONFIG_DIR": "/c"}) == Path("/c/config.toml")
    assert settings.user_file({}).parts[-2:] == ("agentctx", "config.toml")


@pytest.mark.parametrize("where", ["own", "project"])
def test_a_repository_can_not_say_where_its_code_is_sent(root: Path, where: str) -> None:
    table = "[tool.agentctx]\n" if where == "project" else ""
    write(root, **{where: f'{table}url = "https://elsewhere.example/v1"'})
    with pytest.raises(ConfigError, match=r"'url' in .* a repository can't say where its code is sent") as caught:
        load(root)
    assert "AGENTCTX_URL" in str(caught.value.hint)


def test_the_user_says_where_code_is_sent(root: Path) -> None:
    write(root, user='url = "http://localhost:3/v1"')
    assert load(root).options.url == "http://localhost:3/v1"
    assert load(root, {"AGENTCTX_URL": "http://localhost:2/v1"}).options.url == "http://localhost:2/v1"
    assert load(root, url="http://localhost:1/v1").options.url == "http://localhost:1/v1"
