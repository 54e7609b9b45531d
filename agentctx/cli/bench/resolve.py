"""`agentctx bench resolve`."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import click

from agentctx.bench import resolve as bench
from agentctx.bench.lsp_oracle import LspOracle
from agentctx.bench.oracle import RememberedOracle
from agentctx.bench.pyright import pyright
from agentctx.bench.resolve_table import as_json, as_text, differences
from agentctx.cli.output import echo_json

FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


@click.command(short_help="How often references are resolved as a type checker resolves them.")
@click.option("--language", type=click.Choice(["python"]), default="python", show_default=True)
@click.option("--oracle", "oracle_name", type=click.Choice(["pyright"]), default="pyright", show_default=True)
@click.option("--repo", type=FOLDER, default=Path("."), help="The repository.", show_default=True)
@click.option("--server", type=FOLDER, help="The folder where npm installed the oracle; else it is looked up on PATH.")
@click.option(
    "--python",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="The interpreter whose packages pyright sees.",
)
@click.option(
    "--answers",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file that keeps the oracle's answers for the next run.",
)
@click.option("--show", type=click.IntRange(min=0), default=0, help="How many differences to list.", show_default=True)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def resolve(
    language: str,
    oracle_name: str,
    repo: Path,
    server: Path | None,
    python: Path | None,
    answers: Path | None,
    show: int,
    form: str,
) -> None:
    """Compare the resolution of references with a type checker's.

    Precision: of the references that are resolved, those to the definition that the oracle names. Recall: of those
    that it finds in the repository, those resolved so; ambiguous ones count as unresolved.
    """
    files = bench.sources(repo, language)
    with LspOracle(pyright(server, python), repo) as started:
        remembered = RememberedOracle(started, answers, bench.content_digest(files)) if answers else None
        found = bench.compare(files, remembered or started, language)
        if started.failures:
            click.echo(f"{started.name} failed on {started.failures} of the questions: they aren't counted", err=True)
    if remembered is not None:
        remembered.save()
    if form == "json":
        echo_json(as_json(found))
        return
    click.echo(as_text(found))
    for line in islice(differences(found), show):
        click.echo(line)
