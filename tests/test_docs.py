"""The documents say what the program does: commands, options, exit codes, JSON."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from dataclasses import fields
from enum import StrEnum
from typing import get_type_hints

import pytest

from agentctx import errors
from agentctx.cli import edit, select
from agentctx.cli.main import COMMANDS, main
from agentctx.config import RunOptions
from agentctx.report.schema import load_schema
from agentctx.settings import PROJECT_FILE
from tests.trees import ROOT

CLI = (ROOT / "docs/cli.md").read_text("utf-8")
CONFIGURATION = (ROOT / "docs/configuration.md").read_text("utf-8")


def rows() -> Iterator[str]:
    """The table of options as it must stand in docs/configuration.md."""
    hints = get_type_hints(RunOptions)
    for option in fields(RunOptions):
        meta, default = option.metadata, option.default
        limits = [f"{word} {meta[key]:g}" for word, key in (("from", "low"), ("to", "high")) if meta[key] is not None]
        kind = hints[option.name]
        if isinstance(kind, type) and issubclass(kind, StrEnum):
            limits = [", ".join(f"`{choice}`" for choice in kind)]
        if option.name == "cache" or kind is bool:
            limits = ["`true`, `false`"]
        shown = "" if default is None or default == () else f"`{str(default).lower() if kind is bool else default}`"
        yield f"| `{option.name}` | {shown} | {' '.join(limits)} | {meta['help']} |"


def test_the_command_line_is_documented_as_it_is() -> None:
    """`make docs` writes it."""
    spec = importlib.util.spec_from_file_location("cli_docs", ROOT / "tools/cli_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.render() == CLI


@pytest.mark.parametrize("row", list(rows()), ids=[field.name for field in fields(RunOptions)])
def test_every_option_is_documented(row: str) -> None:
    assert row in CONFIGURATION.splitlines()


def test_every_option_can_be_given_somewhere() -> None:
    """As a flag of a command; what is no flag would be a key that nobody finds."""
    known = {option.name for option in fields(RunOptions)}
    flags = {parameter.name for command in (select.select, edit.edit) for parameter in command.params} | {"fail_on"}
    assert known <= flags


def test_no_option_is_documented_that_is_not_there() -> None:
    table = CONFIGURATION.partition("\n## Options\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [option.name for option in fields(RunOptions)]


def _codes() -> list[str]:
    return re.findall(r"^\| `(\d+)` \|", CONFIGURATION, re.MULTILINE)


def test_every_exit_code_is_documented() -> None:
    codes = {kind.exit_code for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "exit_code")}
    assert sorted(int(code) for code in _codes()) == sorted({0, *codes})


def test_files_and_variables_are_documented() -> None:
    for name in (
        PROJECT_FILE,
        "[tool.agentctx]",
        "config.toml",
        "AGENTCTX_CACHE_DIR",
        "AGENTCTX_CONFIG_DIR",
        "NO_COLOR",
    ):
        assert name in CONFIGURATION


def test_every_part_of_the_json_is_documented() -> None:
    for key in load_schema()["properties"]:
        assert f"`{key}`" in CONFIGURATION


def test_the_help_of_the_group_lists_every_command() -> None:
    for name in COMMANDS:
        assert f"## agentctx {name}\n" in CLI
        command = main.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        assert command.name == name
