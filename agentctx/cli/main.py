"""The `agentctx` group, its lazily imported commands, and the one handler of errors."""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import click

from agentctx import __version__
from agentctx.cli.lazy import LazyGroup
from agentctx.cli.output import never_fail_on_a_character
from agentctx.errors import AgentctxError

# Each command's module is imported when it is asked for: `agentctx -h` loads no parser and no model library.
COMMANDS = {
    "select": ("agentctx.cli.select:select", "Choose what goes into the prompt, and say why."),
    "pack": ("agentctx.cli.select:pack", "Print the prompt's text."),
    "check": ("agentctx.cli.check:check", "Report what the prompt, or a change, leaves out."),
    "edit": ("agentctx.cli.edit:edit", "Make an edit, check it, and show or apply it."),
    "bench": ("agentctx.cli.bench:bench", "Measure, and train what is learned."),
    "models": ("agentctx.cli.models:models", "Fetch, list, compare and remove models."),
    "cache": ("agentctx.cli.cache:cache", "Show or clear the cache."),
    "config": ("agentctx.cli.config:config", "Show the options in force and where they come from."),
    "doctor": ("agentctx.cli.doctor:doctor", "Say what works on this machine."),
    "lsp": ("agentctx.cli.lsp:lsp", "Start the language server (stdio)."),
}


class _ReaderGone(Exception):
    """Whoever read our output is gone (`| head`). In place of BrokenPipeError, which click turns into exit 1."""


class MainGroup(LazyGroup):
    """The commands of `agentctx`."""

    table = COMMANDS

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderGone from error


@click.command(cls=MainGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="agentctx")
def main() -> None:
    """Pack a repository, a failing log and tests into one prompt; keep what an edit needs; say what is left out.

    \b
    Exit codes: 0 ok; 1 findings, or the checks failed (nothing landed);
    2 usage; 3 conflict (nothing written); 4 an engine or a model is not
    available; 70 a bug; 130 interrupted (rolled back).
    """


def run(argv: Sequence[str] | None = None) -> None:
    """Entry point: run a command and exit with its code."""
    # A run makes a hundred thousand small objects that live until its end: collecting among them only costs time.
    gc.set_threshold(200_000, 50, 50)
    signal.signal(signal.SIGTERM, _terminate)
    sys.exit(invoke(argv))


def _terminate(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def invoke(argv: Sequence[str] | None = None) -> int:
    """Run a command, print its error if it has one, and return the exit code."""
    try:
        never_fail_on_a_character()
        result = main.main(args=argv, prog_name="agentctx", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("agentctx: interrupted; nothing was left half done", err=True)
        return 130
    except AgentctxError as error:
        return _say(error)
    except (_ReaderGone, BrokenPipeError):
        # Nothing to say, and nothing more to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001 - the one place where bugs end
        return _bug(error)


def _say(error: AgentctxError) -> int:
    click.echo(f"agentctx: {error.message}", err=True)
    if error.hint:
        click.echo(f"  {error.hint}", err=True)
    return error.exit_code


def _bug(error: Exception) -> int:
    """An error that is our fault: the details go to a file that the user can send."""
    details = "".join(traceback.format_exception(error))
    head = f"agentctx {__version__}, Python {sys.version}, {sys.platform}\n{' '.join(sys.argv)}\n"
    click.echo(f"agentctx: a bug: {type(error).__name__}: {error}", err=True)
    try:
        file = _log_folder() / f"bug-{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}.log"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(head + details, encoding="utf-8", errors="backslashreplace")
        click.echo(f"  the details are in {file}", err=True)
    except OSError as refused:
        click.echo(f"  (no log could be written: {refused})\n{details}", err=True)
    return 70


def _log_folder() -> Path:
    from agentctx.settings import cache_root

    return cache_root(os.environ) / "logs"
