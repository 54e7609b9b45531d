"""Exports: made whole or not at all, found only while they fit their model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from agentctx.errors import ConfigError, ModelUnavailable, UnavailableError
from agentctx.exports import MANIFEST, export_path, find_export
from agentctx.models import exports
from agentctx.models.exports import exported, make_export, remove_export
from agentctx.models.folder import ModelFolder


@pytest.fixture
def model(tmp_path: Path) -> ModelFolder:
    folder = tmp_path / "cache" / "small"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(bytes(range(256)) * 40)
    return ModelFolder("small", folder, None)


class Writer:
    """An exporter that copies the weights and counts its calls."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.calls: list[str] = []
        self.error = error

    def __call__(self, source: Path, target: Path, name: str, weights: str, work: Path) -> Mapping[str, str]:
        self.calls.append(weights)
        assert not list(work.iterdir())
        (target / "graph.bin").write_bytes((source / "model.safetensors").read_bytes())
        if self.error is not None:
            raise self.error
        return {"tool": "1.0"}


def left(model: ModelFolder) -> list[str]:
    return sorted(path.name for path in model.path.parent.iterdir())


def test_an_export_is_made_once_and_found(model: ModelFolder) -> None:
    writer = Writer()
    assert exported(model.path, "other") is None
    first = make_export(model, "other", "int8", writer)
    assert first.made
    assert exported(model.path, "other") == first.export.path == model.path.parent / "small.other"
    assert first.export.versions == {"tool": "1.0"}
    assert first.export.n_bytes == 256 * 40
    assert not make_export(model, "other", "int8", writer).made
    assert exported(model.path, "another") is None
    assert writer.calls == ["int8"]
    assert left(model) == [".small.lock", "small", "small.other"]


def test_other_weights_or_force_replace_it(model: ModelFolder) -> None:
    writer = Writer()
    make_export(model, "other", "int8", writer)
    assert make_export(model, "other", "int4", writer).export.weights == "int4"
    assert make_export(model, "other", "int4", writer, force=True).made
    assert writer.calls == ["int8", "int4", "int4"]
    assert left(model) == [".small.lock", "small", "small.other"]


@pytest.mark.parametrize("error", [ModelUnavailable("no"), KeyboardInterrupt()], ids=["refused", "interrupted"])
def test_a_failed_export_leaves_nothing_and_keeps_the_old_one(model: ModelFolder, error: BaseException) -> None:
    with pytest.raises(type(error)):
        make_export(model, "other", "int8", Writer(error))
    assert left(model) == [".small.lock", "small"]
    make_export(model, "other", "int8", Writer())
    with pytest.raises(type(error)):
        make_export(model, "other", "int4", Writer(error))
    assert find_export(model.path, "other", "small").weights == "int8"
    assert left(model) == [".small.lock", "small", "small.other"]


def test_what_a_killed_exporter_left_is_removed(model: ModelFolder) -> None:
    stale = model.path.parent / ".tmp-small-other-x1"
    (stale / "export").mkdir(parents=True)
    make_export(model, "other", "int8", Writer())
    assert not stale.exists()


def test_a_missing_export_says_how_to_make_it(model: ModelFolder) -> None:
    with pytest.raises(ModelUnavailable, match="small has not been exported for other") as caught:
        find_export(model.path, "other", "small")
    assert caught.value.hint == f"agentctx models fetch {model.path} --engine other"
    (model.path / "agentctx.json").write_text("{}")  # fetched by name
    with pytest.raises(ModelUnavailable) as caught:
        find_export(model.path, "other", "small")
    assert caught.value.hint == "agentctx models fetch small --engine other"


@pytest.mark.parametrize("file", ["config.json", "model.safetensors"])
def test_an_export_of_other_weights_is_stale(model: ModelFolder, file: str) -> None:
    make_export(model, "other", "int8", Writer())
    (model.path / file).write_bytes(b"{ }" * 4000)
    with pytest.raises(ModelUnavailable, match="stale"):
        find_export(model.path, "other", "small")
    assert exported(model.path, "other") is None
    assert make_export(model, "other", "int8", Writer()).made


@pytest.mark.parametrize("damage", ["changed", "cut", "gone", "manifest", "version", "half a manifest"])
def test_a_damaged_export_is_noticed(model: ModelFolder, damage: str) -> None:
    path = make_export(model, "other", "int8", Writer()).export.path
    data = (path / "graph.bin").read_bytes()
    if damage == "changed":
        (path / "graph.bin").write_bytes(b"x" + data[1:])
    elif damage == "cut":
        (path / "graph.bin").write_bytes(data[:-1])
    elif damage == "gone":
        (path / "graph.bin").unlink()
    elif damage == "manifest":
        (path / MANIFEST).write_text("no JSON")
    elif damage == "version":
        written = json.loads((path / MANIFEST).read_text())
        (path / MANIFEST).write_text(json.dumps({**written, "version": 0}))
    else:
        (path / MANIFEST).write_text('{"version": 1}')
    with pytest.raises(ModelUnavailable, match=r"damaged|another version") as caught:
        find_export(model.path, "other", "small")
    assert "--engine other" in (caught.value.hint or "")


def test_an_export_is_removed_usable_or_not(model: ModelFolder) -> None:
    assert remove_export(model.path, "other") == 0
    path = make_export(model, "other", "int8", Writer()).export.path
    (path / MANIFEST).unlink()
    assert remove_export(model.path, "other") == 256 * 40
    assert left(model) == [".small.lock", "small"]
    assert not export_path(model.path, "other").exists()


def test_unknown_weights_are_refused(model: ModelFolder) -> None:
    with pytest.raises(ConfigError, match="int3"):
        make_export(model, "other", "int3", Writer())


def test_a_full_disk_is_said_before_anything_is_written(model: ModelFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(exports.shutil, "disk_usage", lambda path: usage)
    writer = Writer()
    with pytest.raises(UnavailableError, match="of disk"):
        make_export(model, "other", "int8", writer)
    assert not writer.calls
    assert left(model) == [".small.lock", "small"]


def test_an_error_of_the_disk_is_ours(model: ModelFolder) -> None:
    with pytest.raises(UnavailableError, match="can't be written"):
        make_export(model, "other", "int8", Writer(OSError(28, "No space left on device")))
    assert left(model) == [".small.lock", "small"]
