"""`agentctx bench omissions`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentctx.cli.output import echo_json
from agentctx.errors import UsageError

if TYPE_CHECKING:
    from agentctx.bench.omissions.measure import MissingOracle

FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)
BUDGETS = (400, 3000)


@click.command(short_help="Whether a type checker misses names that no report holds.")
@click.option(
    "--language",
    type=click.Choice(["python", "typescript"]),
    default="python",
    help="typescript: JavaScript too.",
    show_default=True,
)
@click.option("--repo", type=FOLDER, default=Path("."), help="The repository.", show_default=True)
@click.option("--server", type=FOLDER, help="The folder where npm installed the oracle; else it is looked up on PATH.")
@click.option("--selections", type=click.IntRange(min=1), default=200, help="How many.", show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    nargs=2,
    default=BUDGETS,
    help="The least and the most tokens.",
    show_default=True,
)
@click.option("--first", type=click.IntRange(min=0), default=0, help="The number of the first one.", show_default=True)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def omissions(
    language: str,
    repo: Path,
    server: Path | None,
    selections: int,
    seed: int,
    budget: tuple[int, int],
    first: int,
    form: str,
) -> None:
    """Select with random definitions as the focus and random budgets, and let pyright or tsc read what was kept.

    Each name that it can't find there, and finds in the whole repository, must be in the selection's omission
    report. Exits with 1 when one is not. No code is run.
    """
    from agentctx.bench.omissions.measure import Request, measure
    from agentctx.bench.omissions.table import as_json, as_text
    from agentctx.cli.services import CliServices

    if budget[0] > budget[1]:
        raise UsageError(f"--budget {budget[0]} {budget[1]}: the least comes first")
    request = Request(repo, language, selections, seed, budget, first)
    with CliServices() as services:
        found = measure(request, _oracle(language, repo, server), services, services.progress)
    if form == "json":
        echo_json(as_json(found, seed))
    else:
        click.echo(as_text(found, seed))
    if found.silent:
        raise SystemExit(1)


def _oracle(language: str, repo: Path, server: Path | None) -> MissingOracle:
    from agentctx.bench.omissions.missing_python import class_names, pyright_missing
    from agentctx.bench.omissions.missing_typescript import tsc_missing, type_names
    from agentctx.bench.resolve.measure import build_files, sources

    files = {file.path: file.data for file in sources(repo, language)}
    if language == "python":
        return pyright_missing(server, class_names(files))
    return tsc_missing(server, type_names(files), build_files(repo))
