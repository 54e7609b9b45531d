"""`agentctx config show`."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import click

from agentctx import settings
from agentctx.cli.options import find_root
from agentctx.cli.output import echo_json


@click.group(short_help="Show the options in force and where they come from.")
def config() -> None:
    """The options in force. Precedence: flag, environment, agentctx.toml, [tool.agentctx], user file, default."""


@config.command()
@click.option("--repo", metavar="DIR", help="the repository (default: the one around here)")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def show(repo: str | None, form: str) -> None:
    """Every option with its value and the file, variable or default that it comes from."""
    root: Path = find_root(repo)
    resolved = settings.load(root, {}, os.environ)
    values = asdict(resolved.options)
    if form == "json":
        rows = {key: {"value": value, "source": resolved.sources[key]} for key, value in values.items()}
        echo_json({"schema_version": 1, "root": str(root), "options": rows})
        return
    width = max(len(key) for key in values)
    for key, value in values.items():
        shown = "-" if value is None else ", ".join(value) if isinstance(value, tuple) else value
        click.echo(f"{key.replace('_', '-'):<{width}}  {shown!s:<12}  {resolved.sources[key]}")
    click.echo(f"\nfiles: {root / settings.PROJECT_FILE}, {root / 'pyproject.toml'} [tool.agentctx], "
               f"{settings.user_file(os.environ)}; cache: {settings.cache_root(os.environ)}")  # fmt: skip
