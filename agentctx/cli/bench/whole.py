"""`agentctx bench whole`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from agentctx.bench.whole import measure as bench
from agentctx.cli.output import echo_json
from agentctx.errors import UsageError

FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)
_HEAD = ("language", "files", "broken", "as text", "kept texts", "kept units", "split", "new errors", "more errors")


@click.command(short_help="Whether what a selection keeps is whole and parses.")
@click.argument("folders", nargs=-1, required=True, type=FOLDER)
@click.option(
    "--files",
    type=click.IntRange(min=1),
    default=40,
    show_default=True,
    help="At most so many files of each language and folder.",
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--language", multiple=True, metavar="NAME", help="Only files of this language.")
@click.option("--show", type=click.IntRange(min=0), default=10, help="How many failures to list.", show_default=True)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def whole(folders: tuple[Path, ...], files: int, seed: int, language: tuple[str, ...], show: int, form: str) -> None:
    """Pack source files of FOLDERS, each a repository, a few at a time, and keep .1 to .9 of them by random scores.

    Counts units that aren't kept byte for byte with all that they need around them, and files of which the kept
    text, with the marks for left-out lines, has more syntax errors than the file. Exits with 1 when a unit is split,
    or there is an error in a file that had none.
    """
    done = bench.run(folders, files, seed, language)
    if not done.languages:
        raise UsageError(f"no source files{' in ' + ', '.join(language) if language else ''} below these folders")
    if form == "json":
        echo_json({"schema_version": 1, **asdict(done)})
    else:
        click.echo(_text(done, show))
    if not done.is_good:
        raise SystemExit(1)


def _text(done: bench.WholeResult, show: int) -> str:
    rows = [_row(done, name) for name in sorted(done.languages)]
    total = [str(sum(int(row[column]) for row in rows)) for column in range(1, len(_HEAD))]
    lines = [
        f"{done.n_repositories} repositories, {done.n_selections} selections, {done.n_refused} refused",
        "",
        _line(_HEAD),
        _line(["---", *["---:"] * (len(_HEAD) - 1)]),
        *(_line(row) for row in [*rows, ["all", *total]]),
    ]
    for failure in done.failures[:show]:
        lines.append(f"  {failure.kind} {failure.language} {failure.path} keep {failure.share}: {failure.detail}")
    return "\n".join(lines)


def _row(done: bench.WholeResult, name: str) -> list[str]:
    tally = done.languages[name]
    wrong = (done.n_split(name), done.n_wrong_files(name, whole=True), done.n_wrong_files(name, whole=False))
    counts = (tally.n_files, tally.n_broken, tally.n_plain, tally.n_texts, tally.n_units, *wrong)
    return [name, *map(str, counts)]


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"
