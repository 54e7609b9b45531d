"""What only the torch engine can get wrong: families, gaps without a cache, errors on the way, loading."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_models import COMMON, KEPT, build, describe, oracle_of, prompt_ids, score, sparse, tokenized

from agentctx.errors import EngineUnavailable, ModelUnavailable
from agentctx.spec import engines
from agentctx.spec.engines.byte_tokenizer import END_OF_TURN, EOS, ByteTokenizer
from agentctx.spec.protocols import ChatFrame, SampleParams
from agentctx.spec.scorers.published import SpecPrefill

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

IDS = prompt_ids(96)
CLOSE = {"rtol": 0, "atol": 1e-4}


def load(folder: Path) -> Any:
    return engines.load("torch").load_engine(
        folder, "tiny", tokenizer=ByteTokenizer(), chat=ChatFrame(), info=describe(folder)
    )


FAMILIES: dict[str, dict[str, Any]] = {
    "granite": {"attention_multiplier": 0.5, "logits_scaling": 2.0},
    "mistral": {"sliding_window": None, "head_dim": 8},
    "olmo2": {},
    "phi3": {"sliding_window": None, "num_key_value_heads": 4},
    "qwen3": {"head_dim": 16},
    "smollm3": {},
    "starcoder2": {"sliding_window": None},
    "llama": {"rope_scaling": {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_supported_family_keeps_its_positions(family: str, tmp_path: Path) -> None:
    folder = build(tmp_path, family, **FAMILIES[family])
    engine, oracle = load(folder), oracle_of(folder)
    session = engine.prefill(sparse(IDS, KEPT), chunk=16)
    more = prompt_ids(4, seed=2)
    kept = np.concatenate([KEPT, np.arange(96, 100)])
    expected = oracle.logits(np.concatenate([IDS, more]), kept)
    np.testing.assert_allclose(session.logits, expected[95], **CLOSE)
    np.testing.assert_allclose(session.extend(more.tolist()), expected[96:], **CLOSE)
    rows = oracle.attentions(IDS)
    scores = score(engines.load("torch").drafter_from(engine), tokenized(IDS), SpecPrefill(n_lookahead=1, kernel=1))
    np.testing.assert_allclose(scores.values, np.max([layer[:, -1].max(0) for layer in rows], axis=0), atol=1e-5)


def test_the_families_are_those_that_the_engine_takes() -> None:
    from agentctx.spec.engines.torch_model import SUPPORTED

    assert {*FAMILIES, "qwen2"} == SUPPORTED


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"model_type": "mamba"}, "model type 'mamba'"),
    ({"model_type": "qwen2", "layer_types": ["full_attention", "sliding_attention"]}, "sliding_attention layers"),
    ({"model_type": "mistral", "sliding_window": 64}, "slides over 64 tokens"),
    ({"model_type": "llama", "quantization_config": {"quant_method": "gptq"}}, "quantised"),
    ({"model_type": "llama", "rope_parameters": {"rope_type": "dynamic"}}, r"\(dynamic\) changes"),
]


@pytest.mark.parametrize("name", ["torch", "reference"])
@pytest.mark.parametrize(("config", "says"), REFUSED, ids=[says for _, says in REFUSED])
def test_models_that_would_be_wrong_are_refused_by_name(
    config: dict[str, Any], says: str, name: str, tmp_path: Path
) -> None:
    if name == "reference" and config["model_type"] == "mistral":
        says = "model type 'mistral'"
    (tmp_path / "config.json").write_text(json.dumps({**COMMON, **config}))
    with pytest.raises(EngineUnavailable, match=says) as caught:
        engines.load(name).load_engine(
            tmp_path, "tiny", tokenizer=ByteTokenizer(), chat=ChatFrame(), info=describe(tmp_path)
        )
    assert "tiny" in caught.value.message
    assert "llama" in str(caught.value.hint)


@pytest.mark.parametrize("damage", ["missing weight", "truncated", "no weights", "no config", "bad json"])
@pytest.mark.parametrize("name", ["torch", "reference"])
def test_damaged_folders_are_named(damage: str, name: str, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    folder = build(tmp_path, "llama")
    info, weights = describe(folder), folder / "model.safetensors"
    if damage == "missing weight":
        tensors = load_file(weights)
        del tensors["model.layers.1.mlp.up_proj.weight"]
        save_file(tensors, weights, metadata={"format": "pt"})
    elif damage == "truncated":
        weights.write_bytes(weights.read_bytes()[:-1000])
    elif damage == "no weights":
        weights.unlink()
    elif damage == "no config":
        (folder / "config.json").unlink()
    else:
        (folder / "config.json").write_text("{")
    with pytest.raises(ModelUnavailable) as caught:
        engines.load(name).load_engine(folder, "tiny", tokenizer=ByteTokenizer(), chat=ChatFrame(), info=info)
    assert caught.value.hint


@pytest.fixture
def engine(tmp_path: Path) -> Any:
    return load(build(tmp_path, "llama"))


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_error_on_the_way_leaves_the_model_clean(engine: Any, error: type[BaseException]) -> None:
    before = engine.prefill(sparse(IDS, KEPT)).logits
    drafter = engines.load("torch").drafter_from(engine, 2)
    scores = score(drafter, tokenized(IDS)).values
    state = _state(engine.model.module)

    def fail(*_: Any) -> None:
        raise error("on the way")

    handle = engine.model.module.model.layers[1].mlp.register_forward_hook(fail)
    expected = EngineUnavailable if error is RuntimeError else error
    with pytest.raises(expected, match="on the way"):
        engine.prefill(sparse(IDS, KEPT), chunk=8)
    with pytest.raises(expected, match="on the way"):
        score(drafter, tokenized(IDS))
    handle.remove()
    assert _state(engine.model.module) == state
    np.testing.assert_array_equal(engine.prefill(sparse(IDS, KEPT)).logits, before)
    np.testing.assert_array_equal(score(drafter, tokenized(IDS)).values, scores)


def test_an_error_while_sampling_leaves_the_session_clean(engine: Any) -> None:
    session = engine.prefill(sparse(IDS, KEPT))
    before = session.extend([1, 2, 3])
    handle = engine.model.module.model.layers[2].register_forward_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        session.sample(2, SampleParams(max_new=4, temperature=1.0))
    handle.remove()
    np.testing.assert_array_equal(session.extend([1, 2, 3]), before)


def _state(module: Any) -> list[tuple[Any, ...]]:
    """Everything that a patch would leave behind."""
    return [
        (name, type(part), len(part._forward_hooks), len(part._forward_pre_hooks), "forward" in part.__dict__)
        for name, part in module.named_modules()
    ] + [(module.config._attn_implementation, module.config.num_hidden_layers, len(module.model.layers))]


def test_drafter_and_engine_share_one_set_of_weights(engine: Any) -> None:
    drafter = engines.load("torch").drafter_from(engine, 2)
    own = {id(parameter) for parameter in engine.model.module.parameters()}
    assert {id(parameter) for parameter in drafter.model.module.parameters()} < own
    assert len(engine.model.module.model.layers) == 3
    assert drafter.info.n_layers == 2


def test_a_drafter_of_fewer_layers_reads_fewer_weights(tmp_path: Path) -> None:
    folder = build(tmp_path, "qwen2", tie_word_embeddings=True)
    drafter: Any = engines.load("torch").load_drafter(
        folder, "tiny", tokenizer=ByteTokenizer(), info=describe(folder), n_layers=1
    )
    assert len(drafter.model.module.model.layers) == 1
    assert drafter.info.n_params < sum(p.numel() for p in load(folder).model.module.parameters())


def test_two_drafters_in_threads_see_their_own_attention(engine: Any, tmp_path: Path) -> None:
    drafter = engines.load("torch").drafter_from(engine)
    prompts = [tokenized(prompt_ids(90, seed=seed)) for seed in range(4)]
    expected = [score(drafter, prompt).values for prompt in prompts]
    found: dict[int, np.ndarray] = {}

    def work(i: int) -> None:
        found[i] = score(drafter, prompts[i]).values

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, values in enumerate(expected):
        np.testing.assert_array_equal(found[i], values)


def test_gaps_are_not_read_as_packed_sequences(engine: Any) -> None:
    """The trap that the cache object avoids is still there: a negative control for the contract tests."""
    kept = sparse(IDS, KEPT)
    with torch.inference_mode():
        trapped = engine.model.module(
            input_ids=torch.as_tensor(kept.ids, dtype=torch.long)[None],
            position_ids=torch.as_tensor(kept.positions, dtype=torch.long)[None],
            use_cache=False,
        ).logits[0, -1]
    assert np.abs(trapped.numpy() - engine.prefill(kept).logits).max() > 0.1


def test_small_batches_draw_the_same_samples(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    session = engine.prefill(sparse(IDS, KEPT))
    hot = SampleParams(max_new=8, temperature=1.5, seed=3)
    together = [c.ids for c in session.sample(5, hot)]
    monkeypatch.setattr("agentctx.spec.engines.torch.BATCH_BYTES", 1)
    assert [c.ids for c in session.sample(5, hot)] == together


def test_both_engines_draw_the_same_samples(engine: Any) -> None:
    folder = Path(engine.info.folder)
    reference = engines.load("reference").load_engine(
        folder, "tiny", tokenizer=ByteTokenizer(), chat=ChatFrame(), info=describe(folder)
    )
    params = SampleParams(max_new=16, temperature=0.8, top_p=0.9, seed=5)
    ours, theirs = (one.prefill(sparse(IDS, KEPT)).sample(3, params) for one in (engine, reference))
    assert [c.ids for c in ours] == [c.ids for c in theirs]


def test_every_eos_is_known(tmp_path: Path) -> None:
    folder = build(tmp_path, "llama")
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [7, 8]}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": "<|im_end|>"}}))
    assert load(folder).eos == {7, 8, EOS, END_OF_TURN}


def test_loading_and_running_prints_nothing_to_stdout(tmp_path: Path) -> None:
    folder = build(tmp_path, "llama")
    code = f"""
import sys; sys.path[:0] = [{str(Path(__file__).parent)!r}]
from pathlib import Path
from engine_models import *
from agentctx.spec.protocols import *
folder = Path({str(folder)!r})
assert "torch" not in sys.modules
from agentctx.spec import engines
assert engines.available()[0][:2] == ("torch", True)
assert "torch" not in sys.modules and "transformers" not in sys.modules
load = engines.load("torch").load_engine
engine = load(folder, "t", tokenizer=ByteTokenizer(), chat=ChatFrame(), info=describe(folder))
engine.prefill(sparse(prompt_ids(96), KEPT)).sample(2, SampleParams(max_new=3))
score(engines.load("torch").drafter_from(engine, 1), tokenized(prompt_ids(96)))
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_torch_the_hint_says_what_to_install() -> None:
    code = """
import sys; sys.modules["torch"] = None
from agentctx.errors import EngineUnavailable
from agentctx.spec import engines
try: engines.load("torch")
except EngineUnavailable as error: print(error.hint)
print(engines.available()[0])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    hint = 'pip install "agentctx[torch]"'
    assert done.stdout.splitlines() == [hint, str(("torch", False, f"torch not installed: {hint}"))]


def test_unknown_engines_are_refused() -> None:
    with pytest.raises(EngineUnavailable, match="no engine 'abacus'"):
        engines.load("abacus")
