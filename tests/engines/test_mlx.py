"""What only the mlx engine can get wrong: families, dropped configuration, threads, errors on the way, loading."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_models import (
    COMMON,
    DAMAGES,
    KEPT,
    build,
    describe,
    first,
    harm,
    oracle_of,
    prompt_ids,
    score,
    sparse,
    tokenized,
)

from agentctx.errors import EngineUnavailable, ModelUnavailable
from agentctx.models import info as model_info
from agentctx.models.counting import tokenizer_of
from agentctx.models.folder import ModelFolder
from agentctx.spec import engines
from agentctx.spec.engines.byte_tokenizer import ByteTokenizer
from agentctx.spec.prefix import KnownPrefix
from agentctx.spec.protocols import ChatFrame, SampleParams
from agentctx.spec.reading import Group, Reading, Rows, tokens
from agentctx.spec.scorers.published import SpecPrefill

mx = pytest.importorskip("mlx.core", reason="mlx is not installed: make test-mlx", exc_type=ImportError)
pytest.importorskip("mlx_lm", reason="mlx-lm is not installed: make test-mlx")
torch = pytest.importorskip("torch")

IDS = prompt_ids(96)
CLOSE = {"rtol": 0, "atol": 1e-4}


def load(folder: Path, name: str = "mlx") -> Any:
    return engines.load(name).load_engine(
        folder, "tiny", tokenizer=ByteTokenizer(), chat=ChatFrame(), info=describe(folder)
    )


LLAMA3 = {
    "rope_type": "llama3",
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
    "rope_theta": 10000.0,
}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "granite": ("granite", {"attention_multiplier": 0.5, "logits_scaling": 2.0}),
    "mistral": ("mistral", {"sliding_window": None, "head_dim": 8}),
    "olmo2": ("olmo2", {}),
    "phi3": ("phi3", {"sliding_window": None, "num_key_value_heads": 4}),
    "phi3, half rotary": ("phi3", {"sliding_window": None, "num_key_value_heads": 4, "partial_rotary_factor": 0.5}),
    "qwen2": ("qwen2", {"rope_theta": 10_000.0}),
    "qwen3": ("qwen3", {"head_dim": 16}),
    "smollm3": ("smollm3", {"no_rope_layers": [1, 0, 1]}),
    "llama, linear": ("llama", {"rope_scaling": {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}}),
    "llama, llama3": ("llama", {"rope_scaling": LLAMA3}),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_supported_family_keeps_its_positions(family: str, tmp_path: Path) -> None:
    folder = build(tmp_path, FAMILIES[family][0], **FAMILIES[family][1])
    engine, oracle = load(folder), oracle_of(folder)
    session = engine.prefill(sparse(IDS, KEPT), chunk=16)
    more = prompt_ids(4, seed=2)
    kept = np.concatenate([KEPT, np.arange(96, 100)])
    expected = oracle.logits(np.concatenate([IDS, more]), kept)
    np.testing.assert_allclose(session.logits, expected[95], **CLOSE)
    np.testing.assert_allclose(session.extend(more.tolist()), expected[96:], **CLOSE)
    compact = engine.prefill(sparse(IDS[KEPT], np.arange(len(KEPT)))).logits
    assert np.abs(compact - session.logits).max() > 0.01
    rows = oracle.attentions(IDS)
    scores = score(
        engines.load_drafting("mlx").drafter_from(engine), tokenized(IDS), SpecPrefill(n_lookahead=1, kernel=1)
    )
    np.testing.assert_allclose(scores.values, np.max([layer[:, -1].max(0) for layer in rows], axis=0), atol=1e-5)


def test_the_families_are_those_that_the_engine_takes() -> None:
    from agentctx.spec.engines.mlx_load import SUPPORTED

    assert {kind for kind, _ in FAMILIES.values()} == SUPPORTED


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"model_type": "mamba"}, "model type 'mamba'"),
    ({"model_type": "gemma3_text"}, "model type 'gemma3_text'"),
    ({"model_type": "qwen2", "layer_types": ["full_attention", "sliding_attention"]}, "sliding_attention layers"),
    ({"model_type": "mistral", "sliding_window": 64}, "slides over 64 tokens"),
    ({"model_type": "llama", "quantization_config": {"quant_method": "gptq"}}, "quantised"),
    ({"model_type": "llama", "rope_parameters": {"rope_type": "dynamic"}}, r"\(dynamic\) changes"),
    ({"model_type": "llama", "hidden_act": "gelu"}, "activates with gelu"),
    (
        {"model_type": "llama", "rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 10000.0}},
        "rotary embedding is yarn",
    ),
    ({"model_type": "starcoder2"}, "model type 'starcoder2'"),
    (
        {"model_type": "llama", "rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}},
        "a part of each head",
    ),
]


@pytest.mark.parametrize(("config", "says"), REFUSED, ids=[says for _, says in REFUSED])
def test_models_that_would_be_wrong_are_refused_by_name(config: dict[str, Any], says: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**COMMON, **config}))
    with pytest.raises(EngineUnavailable, match=says) as caught:
        load(tmp_path)
    assert "tiny" in caught.value.message
    assert caught.value.hint


def test_what_a_configuration_leaves_out_is_what_transformers_takes_it_for(tmp_path: Path) -> None:
    """mlx-lm's own defaults differ: it ties the head of a llama, and turns a qwen2 by another base."""
    for kind in ("llama", "qwen2"):
        folder = build(tmp_path / kind, kind)
        config = json.loads((folder / "config.json").read_text())
        for key in ("tie_word_embeddings", "rope_parameters"):
            del config[key]
        (folder / "config.json").write_text(json.dumps(config))
        expected = oracle_of(folder).logits(IDS, KEPT)[-1]
        np.testing.assert_allclose(load(folder).prefill(sparse(IDS, KEPT)).logits, expected, **CLOSE)


@pytest.mark.parametrize("damage", [*DAMAGES, "bad value"])
def test_damaged_folders_are_named(damage: str, tmp_path: Path) -> None:
    folder = build(tmp_path, "llama")
    info = describe(folder)
    if damage == "bad value":
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "hidden_size": "wide"}))
    else:
        harm(folder, damage)
    with pytest.raises(ModelUnavailable) as caught:
        engines.load("mlx").load_engine(folder, "tiny", tokenizer=ByteTokenizer(), chat=ChatFrame(), info=info)
    assert caught.value.hint


def test_a_large_model_on_a_slow_cpu_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from agentctx.spec.engines import mlx_device

    folder = build(tmp_path, "llama")
    large = replace(describe(folder), n_params=135_000_000)

    def load_large() -> Any:
        return engines.load("mlx").load_engine(folder, "tiny", tokenizer=ByteTokenizer(), chat=ChatFrame(), info=large)

    monkeypatch.setattr(mlx_device, "is_slow", lambda: True)
    with pytest.raises(EngineUnavailable, match="135 million parameters") as caught:
        load_large()
    assert "AGENTCTX_FORCE_MLX=1" in str(caught.value.hint)
    monkeypatch.setenv("AGENTCTX_FORCE_MLX", "1")
    assert load_large().load_seconds > 0
    monkeypatch.delenv("AGENTCTX_FORCE_MLX")
    monkeypatch.setattr(mlx_device, "is_slow", lambda: False)
    assert load_large().load_seconds > 0


@pytest.fixture
def engine(tmp_path: Path) -> Any:
    return load(build(tmp_path, "llama"))


class Failing:
    """Stands for a layer's feed-forward part."""

    def __init__(self, error: type[BaseException]) -> None:
        self._error = error

    def __call__(self, *_: Any) -> Any:
        raise self._error("on the way")


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_error_on_the_way_leaves_the_model_clean(engine: Any, error: type[BaseException]) -> None:
    session = engine.prefill(sparse(IDS, KEPT))
    before, more = session.logits, session.extend([1, 2, 3])
    drafter = engines.load_drafting("mlx").drafter_from(engine, 2)
    scores = score(drafter, tokenized(IDS), first(2)).values
    layer = engine.model.module.model.layers[1]
    whole, state = layer.mlp, _state(engine.model.module)
    layer.mlp = Failing(error)
    expected = EngineUnavailable if error is RuntimeError else error
    with pytest.raises(expected, match="on the way"):
        engine.prefill(sparse(IDS, KEPT), chunk=8)
    with pytest.raises(expected, match="on the way"):
        score(drafter, tokenized(IDS), first(2))
    with pytest.raises(expected, match="on the way"):
        session.sample(2, SampleParams(max_new=4, temperature=1.0))
    layer.mlp = whole
    assert _state(engine.model.module) == state
    np.testing.assert_array_equal(session.extend([1, 2, 3]), more)
    np.testing.assert_array_equal(engine.prefill(sparse(IDS, KEPT)).logits, before)
    np.testing.assert_array_equal(score(drafter, tokenized(IDS), first(2)).values, scores)


def _state(module: Any) -> list[tuple[Any, ...]]:
    """Everything that a patch would leave behind."""
    return sorted((name, str(type(part)), id(part), sorted(part.__dict__)) for name, part in module.named_modules())


def test_reading_touches_no_module_of_the_engine(engine: Any) -> None:
    before = _state(engine.model.module)
    drafter = engines.load_drafting("mlx").drafter_from(engine, 2)
    score(drafter, tokenized(IDS), first(2))
    assert _state(engine.model.module) == before
    assert len(engine.model.module.layers) == 3
    assert drafter.info.n_layers == 2
    assert drafter.model.module.layers[0] is engine.model.module.layers[0]


def test_a_drafter_of_fewer_layers_reads_fewer_weights(tmp_path: Path) -> None:
    """The weights of the other layers could be damaged: nobody asks for them."""
    folder = build(tmp_path, "qwen2", tie_word_embeddings=True)
    drafter: Any = engines.load_drafting("mlx").load_drafter(
        folder, "tiny", tokenizer=ByteTokenizer(), info=describe(folder), n_layers=1
    )
    assert len(drafter.model.module.layers) == 1
    assert drafter.info.n_params < load(folder).model.n_params


def test_threads_share_weights_and_nothing_else(tmp_path: Path) -> None:
    """Also frequencies of a rotary embedding, which are no parameters: a lazy array fails in another thread."""
    engine = load(build(tmp_path, "llama", rope_scaling=LLAMA3))
    drafter = engines.load_drafting("mlx").drafter_from(engine)
    found: dict[int, tuple[Any, ...]] = {}

    def work(i: int) -> None:
        session = engine.prefill(sparse(prompt_ids(96, seed=i), KEPT))
        found[i] = session.extend([1, 2]), score(drafter, tokenized(prompt_ids(90, seed=i))).values, session

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0, 1, 2, 3]
    for i in range(4):
        extended, scores, session = found[i]
        np.testing.assert_array_equal(session.extend([1, 2]), extended)
        work(i)
        np.testing.assert_array_equal(found[i][0], extended)
        np.testing.assert_array_equal(found[i][1], scores)


def test_small_batches_draw_the_same_samples(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    session = engine.prefill(sparse(IDS, KEPT))
    hot = SampleParams(max_new=8, temperature=1.5, seed=3)
    together = [c.ids for c in session.sample(5, hot)]
    monkeypatch.setattr("agentctx.spec.engines.sampling.BATCH_BYTES", 1)
    assert [c.ids for c in session.sample(5, hot)] == together


def test_it_draws_the_samples_that_torch_draws(engine: Any) -> None:
    params = SampleParams(max_new=16, temperature=0.8, top_p=0.9, seed=5)
    both = [
        one.prefill(sparse(IDS, KEPT)).sample(3, params) for one in (engine, load(Path(engine.info.folder), "torch"))
    ]
    assert [c.ids for c in both[0]] == [c.ids for c in both[1]]


class Store:
    """Implements `prefix.PrefixStore` with one prefix."""

    def __init__(self) -> None:
        self.kept: list[KnownPrefix] = []

    def find(self, ids: Any, n_layers: int, *, chunk: int, states: tuple[int, ...]) -> KnownPrefix | None:
        return self.kept[0].first(len(ids), n_layers) if self.kept else None

    def keep(self, prefix: KnownPrefix) -> None:
        self.kept.append(prefix)


@pytest.mark.parametrize("hidden", [(), (2, 3)])
def test_a_known_prefix_changes_nothing_to_the_last_bit(engine: Any, hidden: tuple[int, ...]) -> None:
    drafter = engines.load_drafting("mlx").drafter_from(engine)
    reading = Reading((Group("last", tokens([80, 95])),), chunk=16, hidden=hidden)
    store, plain, first, second = Store(), Rows(), Rows(), Rows()
    drafter.read(IDS, reading, plain)
    assert drafter.read(IDS, reading, first, store).n_known == 0
    assert drafter.read(IDS, reading, second, store).n_known == 80
    for found in (first, second):
        np.testing.assert_array_equal(np.stack(found.found["last"]), np.stack(plain.found["last"]))
        for depth in hidden:
            np.testing.assert_array_equal(found.states[depth], plain.states[depth])
    assert store.kept[0].keys[0].dtype == np.float32


def test_weights_that_mlx_quantised_run_as_their_dequantised_ones(tmp_path: Path) -> None:
    import mlx.nn as nn
    from mlx.utils import tree_flatten
    from safetensors.numpy import load_file, save_file

    folder = build(tmp_path, "llama", hidden_size=64, intermediate_size=64)
    module = load(folder).model.module
    nn.quantize(module, group_size=32, bits=8)
    weights = {name: np.array(one) for name, one in tree_flatten(module.parameters())}
    plain = load_file(folder / "model.safetensors")
    for name, part in module.named_modules():
        if hasattr(part, "scales"):
            whole = mx.dequantize(part.weight, part.scales, part.biases, group_size=32, bits=8)
            plain[f"{name}.weight"] = np.array(whole)
    save_file(plain, folder / "model.safetensors", metadata={"format": "pt"})
    expected = oracle_of(folder).logits(IDS, KEPT)[-1]
    save_file(weights, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    how = {"group_size": 32, "bits": 8}
    (folder / "config.json").write_text(json.dumps({**config, "quantization": how, "quantization_config": how}))
    quantised = load(folder)
    assert any(hasattr(part, "scales") for _, part in quantised.model.module.named_modules())
    np.testing.assert_allclose(quantised.prefill(sparse(IDS, KEPT)).logits, expected, rtol=0, atol=1e-3)


def test_a_window_is_refused_by_the_cache() -> None:
    from agentctx.spec.engines.mlx_cache import SeatedCache

    with pytest.raises(ValueError, match="sliding window"):
        SeatedCache(4).make_mask(2, window_size=8)
    np.testing.assert_array_equal(np.array(SeatedCache(4).make_mask(2, return_array=True)), [[1, 0], [1, 1]])


def test_loading_and_running_prints_nothing_to_stdout(tmp_path: Path) -> None:
    folder = build(tmp_path, "llama")
    code = f"""
import sys; sys.path[:0] = [{str(Path(__file__).parent)!r}]
from pathlib import Path
from engine_models import *
from agentctx.spec.protocols import *
folder = Path({str(folder)!r})
from agentctx.spec import engines
assert ("mlx", True) in [row[:2] for row in engines.available()]
assert not {{"mlx", "mlx.core", "mlx_lm"}} & set(sys.modules)
load = engines.load("mlx").load_engine
engine = load(folder, "t", tokenizer=ByteTokenizer(), chat=ChatFrame(), info=describe(folder))
engine.prefill(sparse(prompt_ids(96), KEPT)).sample(2, SampleParams(max_new=3))
score(engines.load_drafting("mlx").drafter_from(engine, 1), tokenized(prompt_ids(96)), first(1))
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_doctor_says_what_mlx_runs_on() -> None:
    from agentctx.cli.doctor import CHECKS

    rows = [row for check in CHECKS if check.__name__ == "_engines" for row in check()]
    said = next(row.said for row in rows if row.said.startswith("mlx"))
    assert mx.__version__ in said
    assert ("on a GPU" if mx.default_device().type == mx.DeviceType.gpu else "on a CPU") in said


@pytest.mark.slow
@pytest.mark.model
def test_real_greedy_text_is_that_of_torch(model_folder: ModelFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTCTX_FORCE_MLX", "1")
    tokenizer, info = tokenizer_of(model_folder), model_info.info(model_folder)
    code = inspect.getsource(textwrap)[:600]
    text = f"<|im_start|>user\n{code}\nWhat does this file do?<|im_end|>\n<|im_start|>assistant\n"
    ids = np.asarray(tokenizer.encode(text, special=True)[0], np.int32)
    kept = np.concatenate([np.arange(20), np.arange(60, 90), np.arange(len(ids) - 40, len(ids))])
    said, first = [], []
    for name in ("torch", "mlx"):
        engine = engines.load(name).load_engine(
            model_folder.path, "smollm2", tokenizer=tokenizer, chat=ChatFrame(), info=info
        )
        session = engine.prefill(sparse(ids, kept), chunk=64)
        said.append(session.sample(1, SampleParams(max_new=24))[0])
        first.append(session.logits)
        if name == "torch":
            compact = engine.prefill(sparse(ids[kept], np.arange(len(kept)))).logits
    assert 150 < len(ids) < 300
    np.testing.assert_allclose(first[1], first[0], rtol=0, atol=1e-3)
    assert said[0].ids == said[1].ids
    assert len(said[0].ids) > 8
    assert np.abs(compact - first[0]).max() > 0.1
