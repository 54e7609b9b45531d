"""torch models in bfloat16 on a CPU: near float32, and what a drafter knows from before is the same to the last bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_models import build, describe, first, prompt_ids, score, sparse, tokenized

from agentctx.cli.services import LocalModel
from agentctx.config import Dtype, RunOptions
from agentctx.models.folder import ModelFolder
from agentctx.pipeline.prefixes import DrafterStore, PrefixMemory
from agentctx.spec import engines
from agentctx.spec.engines.byte_tokenizer import BYTE_CHAT, ByteTokenizer
from agentctx.spec.engines.modules import Device
from agentctx.spec.engines.wishes import Wish, Wishes, wishes_of
from agentctx.spec.protocols import SampleParams
from agentctx.spec.reading import Group, Reading, Rows, tokens

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

IDS = prompt_ids(96)
FORMS = {"float32": 4, "bfloat16": 2}


def place(dtype: str) -> Device:
    return Device("cpu", "CPU", dtype, FORMS[dtype], None)


KINDS: dict[str, dict[str, Any]] = {
    "llama": {},
    "gemma2": {"head_dim": 16, "query_pre_attn_scalar": 24, "attn_logit_softcapping": 3.0, "sliding_window": 24},
}


@pytest.fixture(scope="module", params=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("tiny"), request.param, **KINDS[request.param])


def engine(folder: Path, dtype: str) -> Any:
    return engines.load("torch").load_engine(
        folder, "tiny", tokenizer=ByteTokenizer(), chat=BYTE_CHAT, info=describe(folder), place=place(dtype)
    )


def drafter(folder: Path, dtype: str, n_layers: int | None = None) -> Any:
    return engines.load_drafting("torch").load_drafter(
        folder, "tiny", tokenizer=ByteTokenizer(), info=describe(folder), n_layers=n_layers, place=place(dtype)
    )


def test_an_engine_in_bfloat16_is_near_one_in_float32(folder: Path) -> None:
    prompt = sparse(IDS, np.arange(0, 96, 2))
    found = {dtype: engine(folder, dtype).prefill(prompt) for dtype in FORMS}
    apart = np.abs(found["bfloat16"].logits - found["float32"].logits).max()
    assert 0 < apart < 0.05 * np.abs(found["float32"].logits).max() + 0.05
    assert found["bfloat16"].logits.dtype == np.float32
    one, again = (found["bfloat16"].sample(1, SampleParams(max_new=6))[0].ids for _ in range(2))
    assert one == again


def test_both_say_what_they_are_held_in(folder: Path) -> None:
    assert engine(folder, "bfloat16").form == place("bfloat16").form == "bfloat16 on cpu"
    assert drafter(folder, "bfloat16", 1).form == "bfloat16 on cpu"
    assert drafter(folder, "float32").form == engine(folder, "float32").form == "float32 on cpu"


def test_a_drafter_in_bfloat16_scores_nearly_the_same(folder: Path) -> None:
    wide, narrow = (score(drafter(folder, dtype), tokenized(IDS), first(2)).values for dtype in FORMS)
    assert np.corrcoef(wide, narrow)[0, 1] > 0.99
    assert not np.array_equal(wide, narrow)


def test_what_it_knows_from_before_changes_no_bit(folder: Path, tmp_path: Path) -> None:
    small = drafter(folder, "bfloat16")
    reading = Reading(groups=(Group("asks", tokens(range(90, 96))),), chunk=16, hidden=(2,))

    def read(store: DrafterStore | None) -> tuple[Rows, int]:
        rows = Rows()
        return rows, small.read(IDS, reading, rows, store).n_known

    alone, _ = read(None)
    read(DrafterStore("d", tmp_path, PrefixMemory(), form=small.form))
    again, known = read(DrafterStore("d", tmp_path, PrefixMemory(), form=small.form))
    assert known == 80
    np.testing.assert_array_equal(np.stack(again.found["asks"]), np.stack(alone.found["asks"]))
    np.testing.assert_array_equal(again.states[2], alone.states[2])


# ---------------------------------------------------------------- of the command line


def local(folder: Path, tmp_path: Path, wishes: Wishes) -> LocalModel:
    class Bytes(LocalModel):
        info = describe(folder)  # type: ignore[assignment]
        tokenizer = ByteTokenizer()  # type: ignore[assignment]
        chat = BYTE_CHAT  # type: ignore[assignment]

    return Bytes(ModelFolder("tiny", folder, None), "torch", 96, tmp_path, lambda _: None, wishes)


def test_a_drafter_of_the_same_form_runs_on_the_engines_weights(folder: Path, tmp_path: Path) -> None:
    model = local(folder, tmp_path, Wishes(drafter=Wish(dtype="float32", option="drafter-")))
    loaded: Any = model.load_engine()
    shared: Any = model.load_drafter(2)
    weights = "embed_tokens.weight"
    assert shared.load_seconds == 0
    assert dict(shared.model.module.model.named_parameters())[weights] is loaded.model.module.model.embed_tokens.weight


def test_a_drafter_of_another_form_has_its_own(folder: Path, tmp_path: Path) -> None:
    options = RunOptions(device="cpu", drafter_device="cpu", drafter_dtype=Dtype.BFLOAT16)
    model = local(folder, tmp_path, wishes_of(options))
    assert model.load_engine().form == "float32 on cpu"
    own: Any = model.load_drafter(2)
    assert (own.form, own.info.n_layers) == ("bfloat16 on cpu", 2)
    assert own.load_seconds > 0
