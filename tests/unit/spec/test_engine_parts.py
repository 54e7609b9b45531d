"""The table of engines, the byte tokenizer, counting cores, reading safetensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from agentctx.errors import EngineUnavailable
from agentctx.spec import engines
from agentctx.spec.engines import cpus
from agentctx.spec.engines.byte_tokenizer import BYTE_CHAT, END_OF_TURN, EOS, ByteTokenizer
from agentctx.spec.engines.reference_load import read_safetensors


@pytest.mark.parametrize("name", [name for name, entry in engines.ENGINES.items() if entry.drafts_with])
def test_an_engine_that_shows_no_attention_loads_no_drafter(name: str) -> None:
    assert engines.drafter_engine(name) == "torch"
    with pytest.raises(EngineUnavailable, match=f"engine {name} shows no attention") as caught:
        engines.load_drafting(name)
    assert "torch" in (caught.value.hint or "")


def test_bytes_round_trip_with_offsets() -> None:
    text = "a é\n𝄞<|im_end|>"
    ids, starts = ByteTokenizer().encode(text)
    assert bytes(ids) == text.encode()
    assert starts == list(range(len(text.encode())))
    assert ByteTokenizer().decode(ids) == text
    assert END_OF_TURN not in ids
    assert ByteTokenizer().count_batch(["", text]) == [0, len(ids)]


def test_special_tokens_only_when_asked() -> None:
    ids, starts = ByteTokenizer().encode("é<|im_end|>b<|eos|>", special=True)
    assert ids == [0xC3, 0xA9, END_OF_TURN, ord("b"), EOS]
    assert starts == [0, 1, 2, 12, 13]
    assert ByteTokenizer().decode(ids) == "é<|im_end|>b<|eos|>"
    assert ByteTokenizer().encode(BYTE_CHAT.before_user, special=True)[0][0] == END_OF_TURN


def topology(root: Path, siblings: list[str]) -> Path:
    for cpu, text in enumerate(siblings):
        folder = root / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(text + "\n")
    return root


@pytest.mark.parametrize(
    ("siblings", "quota", "expected"),
    [
        (["0,2", "1,3", "0,2", "1,3"], None, 2),
        (["0", "1", "2", "3"], None, 4),
        (["0", "1", "2", "3"], "150000 100000", 2),
        (["0-3", "0-3", "0-3", "0-3"], "max 100000", 1),
        (["0", "1", "2", "3"], "1000 100000", 1),
        ([], None, 4),
    ],
)
def test_physical_cores(
    siblings: list[str], quota: str | None, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    if quota:
        (tmp_path / "cpu.max").write_text(quota + "\n")
    assert cpus.physical_cores(topology(tmp_path, siblings), tmp_path) == expected


def test_the_old_control_groups_count_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("300000")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000")
    assert cpus.physical_cores(topology(tmp_path, ["0", "1", "2", "3"]), tmp_path) == 3
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1")
    assert cpus.physical_cores(tmp_path, tmp_path) == 4


def test_this_machine_has_a_core() -> None:
    assert cpus.physical_cores() >= 1


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_safetensors_are_read_without_the_library(dtype: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    save_file = pytest.importorskip("safetensors.torch").save_file
    tensor = torch.tensor([[1.5, -2.25, 1e-3], [0, 3e4, 7]], dtype=getattr(torch, dtype))
    save_file({"a.weight": tensor, "b": torch.ones(2)}, tmp_path / "x.safetensors")
    found = read_safetensors(tmp_path / "x.safetensors", np.float32)
    np.testing.assert_array_equal(found["a.weight"], tensor.float().numpy())
    assert found["b"].tolist() == [1, 1]
