"""Print docs/cli.md: the help of every command. `make docs` writes it, a test compares it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from agentctx.cli.main import main

WIDTH = 100  # whatever terminal this runs in


def context(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    settings = {**command.context_settings, "max_content_width": WIDTH, "terminal_width": WIDTH}
    return click.Context(command, info_name=name, parent=parent, **settings)


def walk(at: click.Context) -> Iterator[str]:
    yield f"## {at.command_path}\n\n```\n{at.command.get_help(at)}\n```\n"
    if isinstance(at.command, click.Group):
        for name in at.command.list_commands(at):
            child = at.command.get_command(at, name)
            assert child is not None
            yield from walk(context(child, name, at))


def render() -> str:
    intro = "# Command line\n\nGenerated from the program by `make docs`; a test compares it.\n\n"
    return intro + "\n".join(walk(context(main, "agentctx")))


if __name__ == "__main__":
    sys.stdout.write(render())
