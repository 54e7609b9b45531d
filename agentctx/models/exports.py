"""Making, finding and removing exports: a model's folder in the form that one engine runs (agentctx.exports).

An export appears whole or not at all: it is built in a temporary folder beside it and renamed, under the model's lock.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agentctx.errors import ConfigError, ModelUnavailable, UnavailableError
from agentctx.exports import WEIGHTS, Export, describe_export, export_path, find_export
from agentctx.models import memory
from agentctx.models.folder import ModelFolder, weight_files
from agentctx.models.lock import locked
from agentctx.models.wheels import Progress

# Peaks of int8 exports: 1.4 GB for SmolLM2-135M (16 bits: 0.27 GB), 10.0 GB for a Qwen of 1.8 billion (3.6 GB).
_LIBRARY_BYTES = 1_000_000_000
_SPARE_BYTES = 50_000_000


class Exporter(Protocol):
    """Writes the model of a folder into an empty one, in the form that its engine runs."""

    def __call__(self, source: Path, target: Path, name: str, weights: str, work: Path) -> Mapping[str, str]:
        """Use `work` for files in between; return the versions of the packages that were used."""


@dataclass(frozen=True, slots=True)
class Exported:
    """`made`: whether it was made now; else it was there."""

    export: Export
    made: bool
    notes: tuple[str, ...] = ()


def exported(folder: Path, engine: str = "openvino") -> Path | None:
    """The usable export of the model in `folder`, None without one. Imports no engine and reads about 3 MB."""
    try:
        return find_export(folder, engine, folder.name).path
    except ModelUnavailable:
        return None


def make_export(
    folder: ModelFolder,
    engine: str,
    weights: str,
    exporter: Exporter,
    *,
    force: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Export a model once; a usable export with these weights that is there already is left alone.

    Two processes at once do it once. An export with other weights is replaced.

    Raises:
        ConfigError: unknown weights.
        NotEnoughMemory, UnavailableError: memory or disk won't do, or the folder can't be written.
        ModelUnavailable, EngineUnavailable: the exporter refuses the model, or lacks a package.
    """
    if weights not in WEIGHTS:
        raise ConfigError(f"there are no {weights!r} weights", hint=f"choose one of: {', '.join(WEIGHTS)}")
    home, name = folder.path.absolute().parent, folder.path.absolute().name

    def on_wait() -> None:
        if progress is not None:
            progress(f"wait for another process that works on {folder.name}", 0, 0)

    try:
        with locked(home / f".{name}.lock", on_wait=on_wait) as waited:
            clean(home, name, engine)
            present = None if force and not waited else _present(folder, engine, weights)
            if present is not None:
                return Exported(present, made=False)
            if progress is not None:
                progress(f"export {folder.name} for {engine} with {weights} weights", 0, 0)
            notes = _require_room(folder, weights, home)
            return Exported(_make_locked(folder, engine, weights, exporter, home), made=True, notes=notes)
    except OSError as error:
        raise UnavailableError(
            f"the export of {folder.name} can't be written into {home}: {error}",
            hint="free some space, or set AGENTCTX_CACHE_DIR to a folder on another disk",
        ) from error


def remove_export(folder: Path, engine: str) -> int:
    """Remove an export, usable or not; the bytes freed, 0 where there is none. The caller holds the model's lock."""
    path = export_path(folder, engine)
    if not path.is_dir():
        return 0
    freed = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    doomed = Path(tempfile.mkdtemp(prefix=_prefix(folder.name, engine), dir=path.parent))
    os.replace(path, doomed / "old")
    shutil.rmtree(doomed)
    return freed


def clean(home: Path, name: str, engine: str) -> None:
    """Remove what killed exporters left. The lock is held, so nobody works in these folders."""
    for stale in sorted(home.glob(f"{_prefix(name, engine)}*")):
        shutil.rmtree(stale, ignore_errors=True)


def _prefix(name: str, engine: str) -> str:
    return f".tmp-{name}-{engine}-"


def _present(folder: ModelFolder, engine: str, weights: str) -> Export | None:
    try:
        found = find_export(folder.path, engine, folder.name)
    except ModelUnavailable:
        return None
    return found if found.weights == weights else None


def _make_locked(folder: ModelFolder, engine: str, weights: str, exporter: Exporter, home: Path) -> Export:
    work = Path(tempfile.mkdtemp(prefix=_prefix(folder.path.absolute().name, engine), dir=home))
    try:
        built, between, target = work / "export", work / "between", export_path(folder.path, engine)
        built.mkdir()
        between.mkdir()
        versions = exporter(folder.path, built, folder.name, weights, between)
        describe_export(built, folder.path, weights, versions)
        if target.exists():
            os.replace(target, work / "old")
        os.replace(built, target)
        return find_export(folder.path, engine, folder.name)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _require_room(folder: ModelFolder, weights: str, home: Path) -> tuple[str, ...]:
    """Raises UnavailableError or NotEnoughMemory before anything is written. Returns notes."""
    source = sum(file.stat().st_size for file in weight_files(folder.path))
    target = int(source / 2 * WEIGHTS[weights])  # a source of 16 bits; one of 32 needs less than this says
    need, have = 2 * source + target + _SPARE_BYTES, shutil.disk_usage(home).free
    if have < need:
        raise UnavailableError(
            f"exporting {folder.name} needs {need / 1e9:.1f} GB of disk in {home}; there are {have / 1e9:.1f} GB",
            hint="free some space, or set AGENTCTX_CACHE_DIR to a folder on another disk",
        )
    return memory.require(_LIBRARY_BYTES + int(2.1 * source) + target, memory.available(), f"exporting {folder.name}")
