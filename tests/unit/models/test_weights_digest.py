"""Which weights a model has, told by a sample of its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentctx.errors import ModelUnavailable
from agentctx.weights_digest import SAMPLE_BYTES, SAMPLES, weights_digest


def written(file: Path, data: bytes) -> Path:
    file.write_bytes(data)
    return file


def test_equal_files_have_one_digest_and_others_another(tmp_path: Path) -> None:
    data = bytes(range(256)) * 20_000
    one = weights_digest([written(tmp_path / "a", data)])
    assert one == weights_digest([written(tmp_path / "b", data)])
    assert len(one) == 64
    assert one != weights_digest([written(tmp_path / "c", data[:-1])])
    assert one != weights_digest([written(tmp_path / "d", b"x" + data[1:])])
    assert one != weights_digest([written(tmp_path / "e", data[:-1] + b"x")])
    middle = len(data) // 2
    changed = data[:middle] + bytes(SAMPLE_BYTES * SAMPLES) + data[middle + SAMPLE_BYTES * SAMPLES :]
    assert one != weights_digest([written(tmp_path / "f", changed)])


def test_the_files_and_their_order_count(tmp_path: Path) -> None:
    a, b = written(tmp_path / "a", b"one"), written(tmp_path / "b", b"two")
    assert len({weights_digest([a, b]), weights_digest([b, a]), weights_digest([a])}) == 3
    assert weights_digest([written(tmp_path / "empty", b"")])


def test_a_file_that_is_gone_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="can't be read"):
        weights_digest([tmp_path / "gone"])
