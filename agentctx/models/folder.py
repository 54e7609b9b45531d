"""A model folder on disk: its manifest, and whether it is whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentctx.errors import ModelUnavailable
from agentctx.models.safetensors_file import damaged, read_entries
from agentctx.prompt import ChatFrame

MANIFEST = "agentctx.json"
_INDEX = "model.safetensors.index.json"


@dataclass(frozen=True, slots=True)
class FileRecord:
    sha256: str
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """agentctx.json: written by the converter, absent in folders that the user brings."""

    name: str
    source_sha256: str
    converter: int
    files: Mapping[str, FileRecord]
    n_params: int
    tokenizer_digest: str
    chat: ChatFrame

    def to_dict(self) -> dict[str, Any]:
        chat = self.chat
        return {
            "name": self.name,
            "source_sha256": self.source_sha256,
            "converter": self.converter,
            "files": {name: {"sha256": item.sha256, "bytes": item.n_bytes} for name, item in self.files.items()},
            "n_params": self.n_params,
            "tokenizer_digest": self.tokenizer_digest,
            "chat": {
                "before_system": chat.before_system,
                "before_user": chat.before_user,
                "after_user": chat.after_user,
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Manifest:
        return cls(
            name=str(data["name"]),
            source_sha256=str(data["source_sha256"]),
            converter=int(data["converter"]),
            files={str(k): FileRecord(str(v["sha256"]), int(v["bytes"])) for k, v in data["files"].items()},
            n_params=int(data["n_params"]),
            tokenizer_digest=str(data["tokenizer_digest"]),
            chat=ChatFrame(**data["chat"]),
        )


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A folder that was whole when it was opened. `manifest` is None in folders that the user brings."""

    name: str
    path: Path
    manifest: Manifest | None


def open_folder(path: Path, name: str | None = None) -> ModelFolder:
    """Check that the folder is whole: every needed file is there and as long as it must be.

    File lengths are compared with the manifest (if there is one) and with the safetensors headers; contents
    are hashed by `verify` only. Raises ModelUnavailable naming the file.
    """
    folder = _described(path, name, _missing)
    for filename, record in (folder.manifest.files if folder.manifest else {}).items():
        _check_size(path / filename, record)
    for weights in weight_files(path):
        read_entries(weights)
    read_json(path / "config.json")
    return folder


def open_description(path: Path, name: str | None = None) -> ModelFolder:
    """A folder that only has to describe its model (config.json, tokenizer.json): another machine holds the weights.

    Raises ModelUnavailable naming the file that is missing.
    """

    def missing(file: Path) -> ModelUnavailable:
        return ModelUnavailable(f"{file} is missing", hint="copy it from the model that the server runs")

    folder = _described(path, name, missing)
    read_json(path / "config.json")
    return folder


def _described(path: Path, name: str | None, missing: Callable[[Path], ModelUnavailable]) -> ModelFolder:
    """The folder, if it holds what describes a model. `missing` makes the error for a file that isn't there."""
    manifest = read_manifest(path)
    for filename in ("config.json", "tokenizer.json"):
        if not (path / filename).is_file():
            raise missing(path / filename)
    return ModelFolder(name or (manifest.name if manifest else path.name), path, manifest)


def verify(folder: ModelFolder) -> None:
    """Hash every file of the manifest. Raises ModelUnavailable naming the first that differs."""
    for filename, record in (folder.manifest.files if folder.manifest else {}).items():
        found = file_sha256(folder.path / filename)
        if found != record.sha256:
            raise damaged(folder.path / filename, f"its SHA-256 is {found}, expected {record.sha256}")


def has_weights(path: Path) -> bool:
    """Whether all of them lie here (an index alone may have come with the description)."""
    try:
        return bool(weight_files(path))
    except ModelUnavailable:
        return False


def weight_files(path: Path) -> tuple[Path, ...]:
    """The safetensors files: one, or those that the index names. Raises ModelUnavailable for a missing one."""
    single = path / "model.safetensors"
    if single.is_file():
        return (single,)
    index = path / _INDEX
    if not index.is_file():
        raise _missing(single)
    weight_map = read_json(index).get("weight_map")
    names = sorted({str(name) for name in weight_map.values()}) if isinstance(weight_map, Mapping) else []
    if not names or any(Path(name).name != name for name in names):
        raise damaged(index, "its weight_map names no files of this folder")
    files = tuple(path / name for name in names)
    for file in files:
        if not file.is_file():
            raise _missing(file)
    return files


def read_manifest(path: Path) -> Manifest | None:
    file = path / MANIFEST
    if not file.is_file():
        return None
    try:
        return Manifest.from_dict(read_json(file))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged(file, f"it can't be read ({error!r})") from error


def read_json(path: Path) -> Mapping[str, Any]:
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise damaged(path, f"it can't be read as JSON ({error})") from error
    if not isinstance(document, Mapping):
        raise damaged(path, "it holds no JSON object")
    return document


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_size(file: Path, record: FileRecord) -> None:
    if not file.is_file():
        raise _missing(file)
    size = file.stat().st_size
    if size != record.n_bytes:
        raise damaged(file, f"{size} bytes, expected {record.n_bytes}")


def _missing(file: Path) -> ModelUnavailable:
    return ModelUnavailable(
        f"{file} is missing: a model folder holds config.json, tokenizer.json and safetensors weights",
        hint="copy or fetch the model again",
    )
