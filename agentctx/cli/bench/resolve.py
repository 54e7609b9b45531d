"""`agentctx bench resolve`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

import click

from agentctx.bench.oracles.lsp import LspOracle
from agentctx.bench.oracles.oracle import RememberedOracle
from agentctx.bench.oracles.pyright import pyright
from agentctx.bench.oracles.tsserver import TsServerOracle, tsserver
from agentctx.bench.resolve import measure as bench
from agentctx.bench.resolve.table import as_json, as_text, differences
from agentctx.cli.output import echo_json
from agentctx.errors import UsageError
from agentctx.source import SourceFile

FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)
ORACLES = {"python": "pyright", "typescript": "tsserver"}


@click.command(short_help="How often references are resolved as a type checker resolves them.")
@click.option(
    "--language",
    type=click.Choice(sorted(ORACLES)),
    default="python",
    help="typescript: JavaScript too.",
    show_default=True,
)
@click.option(
    "--oracle",
    "oracle_name",
    type=click.Choice(sorted(ORACLES.values())),
    help="Who is asked.  [default: the language's]",
)
@click.option("--repo", type=FOLDER, default=Path("."), help="The repository.", show_default=True)
@click.option("--server", type=FOLDER, help="The folder where npm installed the oracle; else it is looked up on PATH.")
@click.option("--exclude", multiple=True, metavar="FOLDER", help="A folder of the repository to leave out.")
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
    oracle_name: str | None,
    repo: Path,
    server: Path | None,
    exclude: tuple[str, ...],
    python: Path | None,
    answers: Path | None,
    show: int,
    form: str,
) -> None:
    """Compare the resolution of references with a type checker's.

    Precision: of the references that are resolved, those to the definition that the oracle names. Recall: of those
    that it finds in the repository, those resolved so; ambiguous ones count as unresolved.
    """
    if oracle_name not in (None, ORACLES[language]):
        raise UsageError(f"{oracle_name} knows no {language}", hint=f"--oracle {ORACLES[language]}")
    files, configs = bench.sources(repo, language, exclude), bench.build_files(repo)
    with _started(language, repo, server, python, files, configs) as started:
        remembered = RememberedOracle(started, answers, bench.content_digest(files)) if answers else None
        found = bench.compare(files, remembered or started, configs)
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


def _started(
    language: str,
    repo: Path,
    server: Path | None,
    python: Path | None,
    files: Sequence[SourceFile],
    configs: Mapping[str, bytes],
) -> LspOracle | TsServerOracle:
    if language == "python":
        return LspOracle(pyright(server, python), repo)
    return TsServerOracle(tsserver(server), repo, [file.path for file in files], configs)
