"""Click options made from `config.RunOptions`, and the task's arguments. Translation only."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import click

from agentctx import settings, vcs
from agentctx.config import Resolved, RunOptions
from agentctx.errors import RepoError, TaskError
from agentctx.pipeline.refs import parse_focus, parse_test
from agentctx.prompt import Task
from agentctx.repo.logsource import LogSource, open_log, read_stream

F = TypeVar("F", bound=Callable[..., Any])

SELECTION = (
    "budget", "keep", "window", "model", "tokenizer", "drafter", "drafter_layers", "drafter_device", "drafter_dtype",
    "scorer", "calibration", "force_sparse", "force_dense",
    "text_level", "on_omission", "over_budget", "pins", "since", "changes", "coverage", "rank_model", "cache",
)  # fmt: skip
EDITING = (
    "engine", "device", "dtype", "url", "served_model", "samples", "temperature", "top_p", "seed", "max_new",
    "edit_format", "check_cmd", "check_timeout", "protect",
)  # fmt: skip


def run_options(*names: str) -> Callable[[F], F]:
    """Decorator: one click option per named field of RunOptions; None (or ()) means that it was not given."""
    known = {option.name: option for option in fields(RunOptions)}
    hints = get_type_hints(RunOptions)

    def decorate(function: F) -> F:
        for name in reversed(names):
            function = _option(name, hints[name], known[name].default, known[name].metadata)(function)
        return function

    return decorate


def _option(name: str, kind: Any, default: object, meta: Mapping[str, Any]) -> Callable[[F], F]:
    flag = "--" + name.replace("_", "-")
    text = meta["help"]
    if name == "since":
        return click.option(flag, name, metavar="REV", help=text)
    if name == "pins":
        return click.option("--pin", "pins", multiple=True, metavar="PATH[:LINE|#SYMBOL]", help=text)
    if name == "cache":
        return click.option("--cache/--no-cache", "cache", default=None, help=text)
    if kind is bool:
        return click.option(flag, name, is_flag=True, default=None, help=text)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        choice = click.Choice([str(one) for one in kind])
        return click.option(flag, name, type=choice, default=None, help=f"{text} (default {default})")
    if "tuple" in str(kind):
        metavar = "FILE" if name == "coverage" else "GLOB"
        return click.option(flag, name, multiple=True, metavar=metavar, help=text)
    shown = "" if default in (None, "none") or "default" in text else f" (default {default})"
    number = click.INT if "int" in str(kind) else click.FLOAT if "float" in str(kind) else click.STRING
    return click.option(flag, name, type=number, default=None, help=text + shown)


def task_options(function: F) -> F:
    """Decorator: REQUEST, --repo, --log, --test, --focus."""
    function = click.option("--focus", "focus", multiple=True, metavar="PATH[:LINE|#SYMBOL]", help="what to edit")(
        function
    )
    function = click.option("--test", "tests", multiple=True, metavar="PATH[::ID]", help="a failing test")(function)
    log = "a failing log, may be repeated; - reads stdin"
    function = click.option("--log", "logs", multiple=True, metavar="FILE|-", help=log)(function)
    function = click.option("--repo", "repo", metavar="DIR", help="the repository (default: the one around here)")(
        function
    )
    return click.argument("request", required=False, default="")(function)


# ---------------------------------------------------------------- the task


@dataclass(frozen=True, slots=True)
class Setup:
    """What every command starts from."""

    root: Path
    task: Task
    resolved: Resolved

    @property
    def options(self) -> RunOptions:
        return self.resolved.options


TASK_ARGUMENTS = ("request", "repo", "logs", "tests", "focus")


def setup(given: Mapping[str, Any]) -> Setup:
    """Root, task and options from a command's arguments (those of `task_options` and `run_options`).

    Raises:
        RepoError, TaskError, ConfigError: with the value that is wrong.
    """
    root = find_root(given["repo"])
    finish_interrupted(root)
    flags = {name: value for name, value in given.items() if name not in TASK_ARGUMENTS}
    resolved = settings.load(root, flags, os.environ)
    here = Path.cwd()
    task = Task(
        request=os.fsencode(given["request"]).decode("utf-8", "replace"),
        tests=tuple(parse_test(text, root, here) for text in given["tests"]),
        focus=tuple(parse_focus(text, root, here) for text in given["focus"]),
        pins=tuple(parse_focus(text, root) for text in resolved.options.pins),
        logs=_logs(given["logs"]),
    )
    return Setup(root, task, resolved)


def finish_interrupted(root: Path) -> None:
    """What a killed `edit` left is completed or rolled back before anything else, and said.

    Raises:
        ConflictError, DamagedState: the user must decide.
    """
    entry = root / ".git"
    if not entry.is_file() and not (entry / "agentctx").exists():
        return  # no edit ever ran here; a linked work tree (a file) is looked at more closely
    from agentctx.edit.transaction import recover

    recovered = recover(root)
    if recovered is not None:
        click.echo(f"agentctx: {recovered.message()}", err=True)


def find_root(repo: str | None) -> Path:
    """The folder given, or the git work tree around the current folder, or that folder itself.

    Raises:
        RepoError: it is not a folder.
    """
    if repo is None:
        here = Path.cwd()
        return (vcs.top_level(here) or here).resolve()
    root = Path(repo)
    if not root.exists():
        raise RepoError(f"there is no folder '{repo}'")
    if not root.is_dir():
        raise RepoError(f"'{repo}' is not a folder")
    return root.resolve()


def read_log(name: str) -> tuple[str, LogSource]:
    """The log's name and what it holds; '-' is standard input. A large one is a file, removed when the command ends.

    Raises:
        TaskError: it can't be read.
    """
    if name != "-" and not Path(name).is_fifo():
        return Path(name).name, open_log(Path(name), name)
    if name == "-" and sys.stdin.isatty():
        click.echo("agentctx: reading the log from the terminal; end it with Ctrl-D", err=True)
    try:
        with open(name, "rb") if name != "-" else nullcontext(sys.stdin.buffer) as stream:
            source = read_stream(stream)
    except OSError as error:
        raise TaskError(f"can't read the log '{name}': {error.strerror}") from error
    if isinstance(source, Path):
        click.get_current_context().call_on_close(partial(source.unlink, missing_ok=True))
    return Path(name).name, source


def _logs(names: Sequence[str]) -> tuple[tuple[str, LogSource], ...]:
    """The logs in the order given.

    Raises:
        TaskError: one can't be read, or standard input is named twice.
    """
    if names.count("-") > 1:
        raise TaskError("--log - is given twice", hint="standard input can be read once")
    return tuple(read_log(name) for name in names)
