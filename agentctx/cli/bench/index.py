"""`agentctx bench index`."""

from __future__ import annotations

from pathlib import Path

import click

from agentctx.cli.output import echo_json
from agentctx.errors import UsageError

FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


@click.command(short_help="How fast the index is: cold, warm, one file saved.")
@click.option("--repo", type=FOLDER, default=Path("."), help="The repository to copy.", show_default=True)
@click.option("--copies", type=click.IntRange(min=1), help="Measure on so many copies of it in one tree.")
@click.option("--files", type=click.IntRange(min=1), help="Measure on copies of it up to so many files.")
@click.option("--processes", type=click.IntRange(min=1), help="For parsing; default: one per core.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def index(repo: Path, copies: int | None, files: int | None, processes: int | None, form: str) -> None:
    """Measure the index on a copy of a repository in a temporary folder, with an empty cache.

    Cold: nothing is known. Warm: nothing has changed. One file saved: in a process that lives on, until the new
    text is found, when told which file it was and when not. Then whole selections, cold and warm.
    """
    from agentctx.bench.index.measure import as_text, measure

    if copies is not None and files is not None:
        raise UsageError("--copies and --files contradict each other", hint="give one of them")
    found = measure(repo, files=files, copies=copies, processes=processes)
    if form == "json":
        echo_json(found.to_dict())
    else:
        click.echo(as_text(found))
