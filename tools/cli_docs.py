"""Print docs/cli.md: the help of every command. `make docs` writes it, a test compares it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from agentctx.cli.main import main


def walk(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"## {context.command_path}\n\n```\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from walk(child, click.Context(child, info_name=name, parent=context, max_content_width=100))


def render() -> str:
    intro = "# Command line\n\nGenerated from the program by `make docs`; a test compares it.\n\n"
    return intro + "\n".join(walk(main, click.Context(main, info_name="agentctx", max_content_width=100)))


if __name__ == "__main__":
    sys.stdout.write(render())
