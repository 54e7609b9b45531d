"""`agentctx doctor`."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from agentctx import __version__, settings
from agentctx.cli.output import echo_json
from agentctx.errors import AgentctxError


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that was looked at. `status`: pass, warn (something optional is missing), fail."""

    name: str
    status: str
    said: str
    hint: str | None = None


@click.command(short_help="Say what works on this machine.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def doctor(form: str) -> int:
    """Say what works on this machine, and what to do about what doesn't. Exit 1 when something fails."""
    rows = [row for check in CHECKS for row in check()]
    if form == "json":
        echo_json({"schema_version": 1, "rows": [asdict(row) for row in rows]})
    else:
        for row in rows:
            click.echo(f"{row.status:<5} {row.name:<12} {row.said}")
            if row.hint:
                click.echo(f"{'':<18} {row.hint}")
    return 1 if any(row.status == "fail" for row in rows) else 0


def _python() -> Iterator[Row]:
    said = f"agentctx {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    yield Row("agentctx", "pass" if sys.version_info >= (3, 11) else "fail", said)


def _git() -> Iterator[Row]:
    found = shutil.which("git")
    if found is None:
        yield Row("git", "fail", "not found", "install git; without it only `select` on plain folders works")
        return
    from agentctx import vcs

    yield Row("git", "pass", vcs.text(Path.cwd(), "version"))


def _cache() -> Iterator[Row]:
    root = settings.cache_root(os.environ)
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=root, prefix=".doctor-"):
            pass
    except OSError as error:
        yield Row("cache", "warn", f"{root} can't be written: {error.strerror}", "set AGENTCTX_CACHE_DIR")
        return
    free = shutil.disk_usage(root).free / 1e9
    yield Row("cache", "pass", f"{root}, {free:,.1f} GB free on its disk")


def _memory() -> Iterator[Row]:
    from agentctx.models import memory

    available = memory.available()
    if available.n_bytes is None:
        yield Row("memory", "warn", available.source)
    else:
        yield Row("memory", "pass", f"{available.n_bytes / 1e9:,.1f} GB free ({available.source})")


def _engines() -> Iterator[Row]:
    from agentctx.spec.engines import available

    for name, usable, reason in available():
        if name == "mlx" and usable:
            yield _mlx()
        elif name == "torch" and usable:
            yield _torch()
        else:
            yield Row("engine", "pass" if usable else "warn", f"{name}: {reason}")


def _torch() -> Row:
    """Where it would run, and in what; its packages may be there and broken."""
    from agentctx.spec.engines import load_device

    try:
        place_of = load_device("torch").device
        main, drafter = place_of(), place_of(drafts=True)
    except AgentctxError as error:
        return Row("engine", "warn", f"torch: installed, but can't be used: {error.message}", error.hint)
    return Row("engine", "pass", f"torch: a main model in {main.form} ({main.name}), a drafter in {drafter.form}")


def _mlx() -> Row:
    """Its packages are there: whether it has something to run on, only mlx itself knows."""
    try:
        from agentctx.spec.engines.mlx_device import describe, is_slow
    except (ImportError, OSError, RuntimeError) as error:
        return Row("engine", "warn", f"mlx: installed, but can't be used: {error}", 'pip install "agentctx[mlx]"')
    return Row("engine", "warn" if is_slow() else "pass", f"mlx: {describe()}")


def _models() -> Iterator[Row]:
    from agentctx.models.store import list_models

    rows = list_models(settings.cache_root(os.environ))
    for row in rows:
        if row.problem:
            yield Row("model", "fail", f"{row.model.name}: {row.problem}", f"agentctx models fetch {row.model.name}")
        elif row.folder is not None:
            yield Row("model", "pass", f"{row.model.name} in {row.folder.path}")
    if not any(row.folder for row in rows):
        yield Row("model", "warn", "none fetched; tokens are estimated", "agentctx models fetch smollm2")


def _options() -> Iterator[Row]:
    try:
        settings.load(Path.cwd(), {}, os.environ)
    except AgentctxError as error:
        yield Row("options", "fail", error.message, error.hint)
        return
    yield Row("options", "pass", "environment and files are valid")


CHECKS: tuple[Callable[[], Iterator[Row]], ...] = (_python, _git, _cache, _memory, _engines, _models, _options)
