"""Click options made from `config.RunOptions`, and the task's arguments. Translation only."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import click

from agentctx import settings, vcs
from agentctx.config import Resolved, RunOptions
from agentctx.errors import RepoError, TaskError
from agentctx.prompt import FocusRef, Task, TestRef

F = TypeVar("F", bound=Callable[..., Any])

SELECTION = (
    "budget", "keep", "window", "model", "tokenizer", "drafter", "drafter_layers", "force_sparse", "force_dense",
    "text_level", "on_omission", "over_budget", "pins", "cache",
)  # fmt: skip
EDITING = (
    "engine", "samples", "temperature", "top_p", "seed", "max_new", "edit_format", "check_cmd", "check_timeout",
    "protect",
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
        return click.option(flag, name, multiple=True, metavar="GLOB", help=text)
    shown = "" if default in (None, "none") or "default" in text else f" (default {default})"
    number = click.INT if "int" in str(kind) else click.FLOAT if "float" in str(kind) else click.STRING
    return click.option(flag, name, type=number, default=None, help=text + shown)


def task_options(function: F) -> F:
    """Decorator: REQUEST, --repo, --log, --test, --focus."""
    function = click.option("--focus", "focus", multiple=True, metavar="PATH[:LINE|#SYMBOL]", help="what to edit")(
        function
    )
    function = click.option("--test", "tests", multiple=True, metavar="PATH[::ID]", help="a failing test")(function)
    function = click.option("--log", "logs", multiple=True, metavar="FILE|-", help="a failing log; - reads stdin")(
        function
    )
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


def setup(
    request: str,
    repo: str | None,
    logs: Sequence[str],
    tests: Sequence[str],
    focus: Sequence[str],
    flags: Mapping[str, object],
) -> Setup:
    """Root, task and options from what was given.

    Raises:
        RepoError, TaskError, ConfigError: with the value that is wrong.
    """
    root = find_root(repo)
    resolved = settings.load(root, flags, os.environ)
    task = Task(
        request=request,
        tests=tuple(parse_test(text, root) for text in tests),
        focus=tuple(parse_focus(text, root) for text in focus),
        pins=tuple(parse_focus(text, root) for text in resolved.options.pins),
        logs=tuple(read_log(name) for name in logs),
    )
    return Setup(root, task, resolved)


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


def parse_test(text: str, root: Path) -> TestRef:
    """`PATH[::NAME...][[param]]`; a parameter may hold `::` and brackets of its own."""
    path, _, rest = text.partition("::")
    param: str | None = None
    opening = rest.find("[")
    if opening >= 0 and rest.endswith("]"):
        rest, param = rest[:opening], rest[opening + 1 : -1]
    names = tuple(name for name in rest.split("::") if name)
    return TestRef(relative(path, root), names, param)


_LINE = re.compile(r"^(.*):(\d+)$")


def parse_focus(text: str, root: Path) -> FocusRef:
    path, mark, symbol = text.partition("#")
    if mark:
        return FocusRef(relative(path, root), symbol=symbol)
    found = _LINE.match(text)
    if found and not (root / text).exists():
        return FocusRef(relative(found[1], root), line=int(found[2]))
    return FocusRef(relative(text, root))


def relative(path: str, root: Path) -> str:
    """The path relative to the root, with slashes: as given, or seen from the current folder."""
    path = path.replace("\\", "/").removeprefix("./") if os.sep == "\\" or "\\" in path else path.removeprefix("./")
    if not path:
        raise TaskError("an empty path was given")
    given = Path(path)
    if not given.is_absolute() and not (root / given).exists() and (Path.cwd() / given).exists():
        given = Path.cwd() / given
    if given.is_absolute():
        try:
            return given.resolve().relative_to(root).as_posix()
        except ValueError as error:
            raise TaskError(f"'{path}' lies outside of the repository {root}") from error
    return given.as_posix()


def read_log(name: str) -> tuple[str, bytes]:
    """The log's name and bytes; '-' is standard input.

    Raises:
        TaskError: it can't be read.
    """
    if name == "-":
        return "-", sys.stdin.buffer.read()
    try:
        return Path(name).name, Path(name).read_bytes()
    except OSError as error:
        raise TaskError(f"can't read the log '{name}': {error.strerror}") from error
