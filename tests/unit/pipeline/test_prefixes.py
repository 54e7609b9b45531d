"""What drafters have read: found again in memory and on disk, the same to the last bit, and lost without harm."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentctx.models.safetensors_file import read_entries
from agentctx.pipeline import prefixes
from agentctx.pipeline.prefixes import DrafterStore, PrefixMemory, n_bytes, trim
from agentctx.spec.engines import reference
from agentctx.spec.engines.reference_model import DecoderConfig
from agentctx.spec.prefix import KnownPrefix, common, keepable
from agentctx.spec.protocols import Drafter
from agentctx.spec.reading import Aside, Group, ReadFacts, Reading, Rows, tokens

DIGEST = "ab" * 32
CONFIG = DecoderConfig(260, n_layers=3, max_position=4096)
DRAFTER = reference.drafter_from(reference.tiny_engine(config=CONFIG))
IDS = np.random.default_rng(0).integers(0, 250, 120).astype(np.int32)
GROUPS = (Group("asks", tokens(range(100, 118))),)
ASIDE = Aside(97, tokens([7, 8, 9]), (Group("null", tokens([0, 1, 2])),))


def reading(**changes: object) -> Reading:
    return Reading(**{"groups": GROUPS, "aside": ASIDE, "chunk": 16, **changes})  # type: ignore[arg-type]


def store(folder: Path | None, digest: str = DIGEST) -> DrafterStore:
    return DrafterStore(digest, folder, PrefixMemory())


def read(
    ids: np.ndarray, known: DrafterStore | None, drafter: Drafter = DRAFTER, **changes: object
) -> tuple[Rows, ReadFacts]:
    found = Rows()
    return found, drafter.read(ids, reading(**changes), found, known)


def assert_same(a: Rows, b: Rows) -> None:
    assert set(a.found) == set(b.found)
    for name in a.found:
        np.testing.assert_array_equal(np.stack(a.found[name]), np.stack(b.found[name]))
    assert set(a.states) == set(b.states)
    for depth in a.states:
        np.testing.assert_array_equal(a.states[depth], b.states[depth])


@pytest.mark.parametrize("hidden", [(), (2, 3)])
@pytest.mark.parametrize("where", ["memory", "disk"])
def test_a_second_run_reads_only_what_is_new(tmp_path: Path, where: str, hidden: tuple[int, ...]) -> None:
    known = store(tmp_path if where == "disk" else None)
    first, facts = read(IDS, known, hidden=hidden)
    assert facts.n_known == 0
    if where == "disk":
        known = store(tmp_path)
    again, facts = read(IDS, known, hidden=hidden)
    assert facts.n_known == 96  # whole chunks before the aside
    assert_same(again, first)
    assert known.problems == []


def test_an_edit_behind_the_beginning_is_read_anew(tmp_path: Path) -> None:
    read(IDS, store(tmp_path))
    edited = IDS.copy()
    edited[70] += 1
    plain, _ = read(edited, None)
    found, facts = read(edited, store(tmp_path))
    assert facts.n_known == 64
    assert_same(found, plain)
    back, facts = read(IDS, store(tmp_path))
    assert facts.n_known == 96
    assert_same(back, read(IDS, None)[0])


def test_states_are_asked_for_by_depth(tmp_path: Path) -> None:
    """Keys of more layers serve fewer; states are kept for the depths that were asked for."""
    read(IDS, store(tmp_path), hidden=(3,))
    shallow, facts = read(IDS, store(tmp_path), n_layers=2)
    assert facts.n_known == 96
    assert_same(shallow, read(IDS, None, n_layers=2)[0])
    _, facts = read(IDS, store(tmp_path), n_layers=2, hidden=(2,))
    assert facts.n_known == 0
    _, facts = read(IDS, store(tmp_path), n_layers=3, hidden=(3,))
    assert facts.n_known == 96


def test_another_model_knows_nothing(tmp_path: Path) -> None:
    read(IDS, store(tmp_path))
    assert read(IDS, store(tmp_path, "cd" * 32))[1].n_known == 0


def test_what_a_longer_prefix_holds_is_kept_once(tmp_path: Path) -> None:
    short = np.concatenate([IDS[:40], IDS[97:]])
    read(short, store(tmp_path), groups=(Group("asks", tokens([39])),), aside=None)
    assert len(list(tmp_path.iterdir())) == 1
    read(IDS, store(tmp_path))
    (file,) = tmp_path.iterdir()
    assert {entry.name for entry in read_entries(file)} >= {"ids", "000.keys", "002.values"}


@pytest.mark.parametrize("damage", ["cut", "noise", "empty"])
def test_a_damaged_file_is_a_miss_and_said(tmp_path: Path, damage: str) -> None:
    first, _ = read(IDS, store(tmp_path))
    (file,) = tmp_path.iterdir()
    raw = file.read_bytes()
    file.write_bytes({"cut": raw[: len(raw) // 2], "noise": b"\xff" * 200, "empty": b""}[damage])
    known = store(tmp_path)
    again, facts = read(IDS, known)
    assert facts.n_known == 0
    assert_same(again, first)
    assert "was damaged and is removed" in known.problems[0]
    assert read(IDS, store(tmp_path))[1].n_known == 96  # written anew


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    known = store(blocked)
    first, _ = read(IDS, known)
    assert "can't be kept" in known.problems[0]
    assert_same(first, read(IDS, None)[0])
    assert read(IDS, known)[1].n_known == 96  # from memory


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    known = store(tmp_path)
    read(IDS, known)
    assert known.problems == [f"what the drafter read can't be kept in {tmp_path}: No space left on device"]
    assert list(tmp_path.iterdir()) == []


def test_the_oldest_files_go(tmp_path: Path) -> None:
    for n in range(5):
        (tmp_path / f"{n}").write_bytes(b"x" * 10)
        os.utime(tmp_path / f"{n}", (n, n))
    trim(tmp_path, 25)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["3", "4"]
    trim(tmp_path / "none", 25)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    one = KnownPrefix(IDS, (np.zeros((1, 120, 4), np.float32),), (np.zeros((1, 120, 4), np.float32),))
    monkeypatch.setattr(prefixes, "MEMORY_CAP", 2 * n_bytes(one))
    memory = PrefixMemory()
    for name in "abc":
        memory.put(name, one)
    assert list(memory.held) == ["b", "c"]


def test_keys_of_another_form_are_another_drafters(tmp_path: Path) -> None:
    """They aren't the same to the last bit."""
    memory = PrefixMemory()
    wide, narrow = "float32 on cpu", "bfloat16 on cpu"
    read(IDS, DrafterStore(DIGEST, tmp_path, memory, form=wide))
    assert read(IDS, DrafterStore(DIGEST, None, memory, form=narrow))[1].n_known == 0
    assert read(IDS, DrafterStore(DIGEST, tmp_path, PrefixMemory(), form=narrow))[1].n_known == 0
    assert read(IDS, DrafterStore(DIGEST, None, memory, form=wide))[1].n_known == 96
    assert read(IDS, DrafterStore(DIGEST, tmp_path, PrefixMemory(), form=wide))[1].n_known == 96


def test_values_of_a_prompt_are_kept_by_content(tmp_path: Path) -> None:
    known = store(tmp_path)
    assert known.values("k") is None
    known.form = "bfloat16 on cpu"
    known.keep_values("k", np.asarray([1.5, -2], np.float32))
    found = store(tmp_path).values("k")
    assert found is not None
    assert (found[0].tolist(), found[1]) == ([1.5, -2], "bfloat16 on cpu")
    (tmp_path / "k.npy").write_bytes(b"nonsense")
    assert known.values("k") is None
    assert "damaged" in known.problems[0]
    assert not (tmp_path / "k.npy").exists()


def test_what_may_come_from_a_prefix() -> None:
    assert keepable(reading(), 120) == 96
    assert keepable(reading(aside=None), 120) == 96
    assert keepable(reading(aside=None, groups=(), n_lookahead=8), 120) == 112
    assert keepable(reading(chunk=256), 120) == 0
    assert common(IDS, IDS[:50], 16) == 48
    assert common(IDS, np.zeros(0, np.int32), 16) == 0


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_after_any_edits_cached_is_uncached(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A session of edits: lines changed, put in and taken out anywhere; every run equals the run without a cache."""
    known = store(tmp_path_factory.mktemp("session"))
    ids = IDS.copy()
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, 95))
        kind = data.draw(st.sampled_from(["change", "insert", "remove"]))
        if kind == "change":
            ids[at] = data.draw(st.integers(0, 249))
        elif kind == "insert":
            ids = np.insert(ids, at, data.draw(st.lists(st.integers(0, 249), max_size=20))).astype(np.int32)
        else:
            ids = np.delete(ids, slice(at, at + data.draw(st.integers(0, 10))))
        n = len(ids)
        asks = {"groups": (Group("asks", tokens(range(n - 18, n))),), "aside": Aside(n - 20, ASIDE.ids, ASIDE.groups)}
        hidden = data.draw(st.sampled_from([(), (3,), (1, 2)]))
        found, _ = read(ids, known, hidden=hidden, **asks)
        plain, _ = read(ids, None, hidden=hidden, **asks)
        assert_same(found, plain)


def test_torch_takes_prefixes_over(tmp_path: Path, torch_drafter: Callable[[], Drafter]) -> None:
    drafter = torch_drafter()
    first, _ = read(IDS, store(tmp_path), drafter, hidden=(1, 3))
    again, facts = read(IDS, store(tmp_path), drafter, hidden=(1, 3))
    assert facts.n_known == 96
    assert_same(again, first)


@pytest.fixture
def torch_drafter(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Drafter]:
    pytest.importorskip("torch")
    from agentctx.spec.engines import load_drafting
    from agentctx.spec.engines.byte_tokenizer import ByteTokenizer
    from tests.engines.engine_models import MODELS, build, describe

    def make() -> Drafter:
        folder = build(tmp_path_factory.mktemp("tiny"), **MODELS["qwen2"])
        return load_drafting("torch").load_drafter(folder, "tiny", tokenizer=ByteTokenizer(), info=describe(folder))

    return make
