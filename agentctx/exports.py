"""Models in the form that one engine runs, made once from a model's folder and kept beside it. No engine is named here.

The export of `models/NAME` for engine ENGINE is `models/NAME.ENGINE`; its agentctx-export.json says what it was made
from. A usable export is whole, and the weights in the model's folder are still those that it was made from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentctx.errors import ModelUnavailable
from agentctx.weights_digest import weights_digest

MANIFEST = "agentctx-export.json"
VERSION = 1  # of what the exporters write; raise it when older exports can't be used any more
WEIGHTS = {"int8": 1.0, "int4": 0.65, "float32": 4.0}  # bytes per parameter; 4-bit groups have scales, the ends 8 bits


@dataclass(frozen=True, slots=True)
class Export:
    """A usable export."""

    path: Path
    weights: str  # a key of WEIGHTS
    n_bytes: int  # of all its files
    versions: Mapping[str, str]  # of the packages that made it


def export_path(folder: Path, engine: str) -> Path:
    """Where the export of the model in `folder` lies, if there is one."""
    whole = folder.absolute()
    return whole.with_name(f"{whole.name}.{engine}")


def find_export(folder: Path, engine: str, name: str) -> Export:
    """The usable export of the model in `folder`. Reads about 3 MB, imports no engine.

    Raises:
        ModelUnavailable: there is none, it is damaged, or it was made from other weights; the hint makes it.
    """
    path = export_path(folder, engine)
    hint = f"agentctx models fetch {_asked_as(folder, name)} --engine {engine}"
    if not (path / MANIFEST).is_file():
        raise ModelUnavailable(f"{name} has not been exported for {engine}", hint=hint)
    try:
        written = json.loads((path / MANIFEST).read_bytes())
        version, weights, source = int(written["version"]), str(written["weights"]), str(written["source"])
        files = {str(file): str(digest) for file, digest in written["files"].items()}
        versions = {str(package): str(number) for package, number in written["versions"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelUnavailable(f"the export {path} is damaged: {MANIFEST}: {error!r}", hint=hint) from error
    if version != VERSION or weights not in WEIGHTS:
        raise ModelUnavailable(f"the export {path} was made by another version of agentctx", hint=hint)
    if source != source_digest(folder):
        raise ModelUnavailable(f"the export {path} is stale: {name} has other weights now", hint=hint)
    for file, digest in files.items():
        if not (path / file).is_file() or weights_digest([path / file]) != digest:
            raise ModelUnavailable(f"the export {path} is damaged: {file} is missing or changed", hint=hint)
    return Export(path, weights, sum((path / file).stat().st_size for file in files), versions)


def describe_export(path: Path, folder: Path, weights: str, versions: Mapping[str, str]) -> None:
    """Write the manifest of a finished export in `path`, which was made from the model in `folder`."""
    files = sorted(file for file in path.iterdir() if file.is_file() and file.name != MANIFEST)
    document = {
        "version": VERSION,
        "weights": weights,
        "source": source_digest(folder),
        "files": {file.name: weights_digest([file]) for file in files},
        "versions": dict(sorted(versions.items())),
    }
    (path / MANIFEST).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def source_digest(folder: Path) -> str:
    """Tells the configuration and the weights of the model in `folder` from others."""
    return weights_digest([folder / "config.json", *sorted(folder.glob("*.safetensors"))])


def _asked_as(folder: Path, name: str) -> str:
    """What the user calls the model: the name under which it was fetched, or its folder."""
    return name if (folder / "agentctx.json").is_file() and folder.name == name else str(folder)
