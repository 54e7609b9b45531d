"""What only the torch engine can get wrong: families, gaps without a cache, errors on the way, loading."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_models import (
    COMMON,
    DAMAGES,
    KEPT,
    Oracle,
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
from agentctx.prompt import SparsePrompt
from agentctx.spec import engines
from agentctx.spec.engines.byte_tokenizer import END_OF_TURN, EOS, ByteTokenizer
from agentctx.spec.prefix import KnownPrefix
from agentctx.spec.protocols import ChatFrame, SampleParams
from agentctx.spec.reading import Group, Reading, Rows, tokens
from agentctx.spec.scorers.published import GemFilter, SpecPrefill
from agentctx.spec.windows import score_in_windows

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from agentctx.spec.engines.torch_capture import TorchWatch  # noqa: E402
from agentctx.spec.engines.torch_layers import LayerKind  # noqa: E402

IDS = prompt_ids(96)
CLOSE = {"rtol": 0, "atol": 1e-4}


def load(folder: Path) -> Any:
    return engines.load("torch").load_engine(
        folder, "tiny", tokenizer=ByteTokenizer(), chat=ChatFrame(), info=describe(folder)
    )


SLIDING, FULL = "sliding_attention", "full_attention"
MIXED = [SLIDING, FULL, SLIDING]
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": 10000.0}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
    "rope_theta": 10000.0,
}
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0, 1.1, 1.2, 1.3],
    "long_factor": [1.0, 2.0, 4.0, 8.0],
    "original_max_position_embeddings": 64,
    "factor": 4.0,
}
GEMMA = {"head_dim": 16, "query_pre_attn_scalar": 24, "sliding_window": 24}
GEMMA3_ROPES = {
    FULL: {"rope_type": "linear", "factor": 8.0, "rope_theta": 1_000_000.0},
    SLIDING: {"rope_type": "default", "rope_theta": 10_000.0},
}
# Model type, and a line for each way of attending; sliding ones also keep nothing within some windows.
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "gemma2": ("gemma2", {**GEMMA, "attn_logit_softcapping": 3.0, "final_logit_softcapping": 2.0}),
    "gemma2-no-caps": ("gemma2", {**GEMMA, "attn_logit_softcapping": None, "final_logit_softcapping": None}),
    "gemma3": ("gemma3_text", {**GEMMA, "layer_types": MIXED, "rope_parameters": GEMMA3_ROPES}),
    "gpt-oss": (
        "gpt_oss",
        {"head_dim": 16, "layer_types": MIXED, "sliding_window": 24, "num_local_experts": 4, "rope_parameters": YARN},
    ),
    "granite": ("granite", {"attention_multiplier": 0.5, "logits_scaling": 2.0}),
    "ministral": ("ministral", {"head_dim": 8, "layer_types": MIXED, "sliding_window": 24}),
    "mistral": ("mistral", {"sliding_window": None, "head_dim": 8}),
    "mistral-sliding": ("mistral", {"sliding_window": 24}),
    "mistral-wide": ("mistral", {"sliding_window": 120}),
    "olmo2": ("olmo2", {}),
    "phi3": ("phi3", {"sliding_window": None, "num_key_value_heads": 4}),
    "phi3-partial": (
        "phi3",
        {
            "sliding_window": 40,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
        },
    ),
    "phi3-longrope": (
        "phi3",
        {"sliding_window": None, "rope_parameters": LONGROPE, "original_max_position_embeddings": 64},
    ),
    "qwen2-sliding": ("qwen2", {"use_sliding_window": True, "sliding_window": 24, "max_window_layers": 1}),
    "qwen2-yarn": ("qwen2", {"rope_parameters": YARN}),
    "qwen3": ("qwen3", {"head_dim": 16}),
    "qwen3-sliding": ("qwen3", {"use_sliding_window": True, "sliding_window": 24, "layer_types": MIXED}),
    "smollm3": ("smollm3", {}),
    "smollm3-sliding": ("smollm3", {"use_sliding_window": True, "sliding_window": 24, "layer_types": MIXED}),
    "starcoder2": ("starcoder2", {"sliding_window": None}),
    "starcoder2-sliding": ("starcoder2", {"sliding_window": 24}),
    "llama-linear": ("llama", {"rope_scaling": {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}}),
    "llama-llama3": ("llama", {"rope_parameters": LLAMA3}),
}


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Family:
    kind, extra = FAMILIES[request.param]
    folder = build(tmp_path_factory.mktemp(request.param), kind, **extra)
    return Family(load(folder), oracle_of(folder))


@dataclass(frozen=True)
class Family:
    engine: Any
    oracle: Oracle

    @property
    def whole(self) -> list[bool]:
        """Of each layer, whether it sees all of a prompt of 96 tokens; by what transformers says of it."""
        config = self.oracle.model.config
        window = getattr(config, "sliding_window", None)
        types = getattr(config, "layer_types", None) or [SLIDING] * config.num_hidden_layers
        return [window is None or window >= 96 or of == FULL for of in types]


def test_every_supported_family_keeps_its_positions(family: Family) -> None:
    session = family.engine.prefill(sparse(IDS, KEPT), chunk=16)
    more = prompt_ids(40, seed=2)
    kept = np.concatenate([KEPT, np.arange(96, 136)])
    expected = family.oracle.logits(np.concatenate([IDS, more]), kept)
    np.testing.assert_allclose(session.logits, expected[95], **CLOSE)
    np.testing.assert_allclose(session.extend(more.tolist()), expected[96:], **CLOSE)
    compact = family.engine.prefill(SparsePrompt(IDS[KEPT], np.arange(len(KEPT), dtype=np.int32), len(KEPT)))
    assert np.abs(compact.logits - session.logits).max() > 0.01


@pytest.mark.parametrize("chunk", [1, 2, 16, 1000])
def test_chunks_of_every_family_equal_one_pass(family: Family, chunk: int) -> None:
    session = family.engine.prefill(sparse(IDS, KEPT), chunk=chunk)
    np.testing.assert_allclose(session.logits, family.oracle.logits(IDS, KEPT)[-1], **CLOSE)
    np.testing.assert_allclose(
        family.engine.prefill(sparse(IDS, np.arange(96)), chunk=chunk).logits,
        family.oracle.logits(IDS, np.arange(96))[-1],
        **CLOSE,
    )


def test_sampling_of_every_family_follows_the_masked_dense_model(family: Family) -> None:
    completions = family.engine.prefill(sparse(IDS, KEPT)).sample(2, SampleParams(max_new=6))
    ids, kept = IDS, KEPT
    for token in completions[1].ids:
        logits = family.oracle.logits(ids, kept)[-1]
        assert logits[token] >= logits.max() - 1e-4
        ids, kept = np.append(ids, token), np.append(kept, len(ids))
    assert completions[0].ids == completions[1].ids


@pytest.mark.parametrize("chunk", [32, 1000])
@pytest.mark.parametrize("n_layers", [1, 2, 3])
def test_captured_rows_of_every_family_are_the_model_s_attention(family: Family, n_layers: int, chunk: int) -> None:
    drafter = engines.load_drafting("torch").drafter_from(family.engine, n_layers)
    groups = tuple(Group(f"q{at}", tokens([at]), local=True) for at in (3, 40, 95))
    rows = Rows()
    drafter.read(IDS, Reading(groups, n_layers, chunk=chunk), rows)
    expected = family.oracle.attentions(IDS)
    for at in (3, 40, 95):
        assert len(rows.found[f"q{at}"]) == n_layers
        for found, layer in zip(rows.found[f"q{at}"], expected, strict=False):
            np.testing.assert_allclose(found, layer[:, at], rtol=0, atol=1e-5)
    window = getattr(family.oracle.model.config, "sliding_window", None) or 96
    for found, whole in zip(rows.found["q95"], family.whole, strict=False):
        assert whole or not found[:, : 96 - window].any()
        assert not whole or (found > 0).all()


def test_layers_that_do_not_see_the_whole_prompt_do_not_vote(family: Family) -> None:
    drafter = engines.load_drafting("torch").drafter_from(family.engine)
    scorer = SpecPrefill(n_lookahead=1, kernel=1)
    if not any(family.whole):
        with pytest.raises(EngineUnavailable, match="the first 3 layers of tiny slide over fewer tokens than the 96"):
            score(drafter, tokenized(IDS), scorer)
        return
    layers = family.oracle.attentions(IDS)
    voting = [layer[:, -1] for layer, whole in zip(layers, family.whole, strict=True) if whole]
    if family.engine.model.kinds[0].sinks is None:
        np.testing.assert_allclose([rows.sum(-1) for rows in voting], 1, rtol=0, atol=1e-5)
    scores = score(drafter, tokenized(IDS), scorer)
    np.testing.assert_allclose(scores.values, np.max([rows.max(0) for rows in voting], axis=0), rtol=0, atol=1e-5)


def test_the_families_are_those_that_the_engine_takes() -> None:
    from agentctx.spec.engines.torch_model import SUPPORTED

    assert {kind for kind, _ in FAMILIES.values()} == SUPPORTED


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"model_type": "mamba"}, "model type 'mamba' runs a recurrent state"),
    ({"model_type": "jamba"}, "model type 'jamba' has recurrent layers"),
    ({"model_type": "qwen3_next"}, "model type 'qwen3_next' has recurrent layers"),
    ({"model_type": "recurrent_gemma"}, "model type 'recurrent_gemma' has recurrent layers"),
    ({"model_type": "lfm2"}, "model type 'lfm2' mixes neighbouring tokens by convolutions"),
    ({"model_type": "deepseek_v3"}, "model type 'deepseek_v3' keeps latent vectors"),
    ({"model_type": "deepseek_v32"}, "model type 'deepseek_v32' chooses by itself"),
    ({"model_type": "llama4_text"}, "model type 'llama4_text' attends in chunks"),
    ({"model_type": "gpt2"}, "model type 'gpt2' has no rotary embeddings"),
    ({"model_type": "gemma3", "text_config": {}}, "model type 'gemma3' reads more than text"),
    ({"model_type": "mixtral"}, "model type 'mixtral' was not compared"),
    ({"model_type": "qwen2", "layer_types": ["full_attention", "linear_attention"]}, "linear_attention layers"),
    ({"model_type": "llama", "quantization_config": {"quant_method": "gptq"}}, "quantised"),
    ({"model_type": "llama", "rope_parameters": {"rope_type": "dynamic"}}, r"\(dynamic\) changes"),
    (
        {
            "model_type": "qwen2",
            "rope_parameters": {"full_attention": {"rope_type": "longrope"}, "sliding_attention": {}},
        },
        r"\(longrope\) changes",
    ),
    ({"model_type": "llama", "rope_scaling": {"type": "su"}}, r"\(su\) changes"),
    ({"model_type": "llama", "rope_parameters": {"rope_type": "proportional"}}, r"\(proportional\) was not compared"),
    ({"model_type": "qwen2", "use_bidirectional_attention": True}, "attend to later ones"),
]
WINDOWS_REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"model_type": "qwen2", "layer_types": ["full_attention", "sliding_attention"]}, "sliding_attention layers"),
    ({"model_type": "llama", "sliding_window": 64}, "slides over 64 tokens"),
    ({"model_type": "llama", "rope_parameters": {"rope_type": "longrope"}}, r"\(longrope\) changes"),
]


@pytest.mark.parametrize(
    ("name", "config", "says"),
    [(name, *row) for name in ("torch", "reference") for row in REFUSED]
    + [("reference", *row) for row in WINDOWS_REFUSED],
)
def test_models_that_would_be_wrong_are_refused_by_name(
    config: dict[str, Any], says: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**COMMON, **config}))
    with pytest.raises(EngineUnavailable, match=says) as caught:
        engines.load(name).load_engine(
            tmp_path, "tiny", tokenizer=ByteTokenizer(), chat=ChatFrame(), info=describe(tmp_path)
        )
    assert "tiny" in caught.value.message
    assert "llama" in str(caught.value.hint)


def test_every_refused_type_exists() -> None:
    from transformers import CONFIG_MAPPING

    from agentctx.spec.engines.folder import REASONS

    assert set(REASONS) <= set(CONFIG_MAPPING)


def test_layer_types_that_transformers_ignores_are_refused(tmp_path: Path) -> None:
    folder = build(tmp_path, "starcoder2", sliding_window=24)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "layer_types": MIXED}))
    with pytest.raises(EngineUnavailable, match="transformers slides all of a starcoder2 model"):
        load(folder)


def test_a_type_that_transformers_takes_for_another_is_judged_as_that(tmp_path: Path) -> None:
    """A mistral model with types of layers is a ministral one."""
    folder = build(tmp_path, "ministral", head_dim=8, layer_types=MIXED, sliding_window=24)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "mistral"}))
    assert [kind.window for kind in load(folder).model.kinds] == [24, None, 24]


def test_a_window_that_the_configuration_leaves_out_is_known(tmp_path: Path) -> None:
    """transformers takes 4096 for mistral models; null is none."""
    folder = build(tmp_path, "mistral", sliding_window=24)
    config = json.loads((folder / "config.json").read_text())
    del config["sliding_window"]
    (folder / "config.json").write_text(json.dumps(config))
    assert [kind.window for kind in load(folder).model.kinds] == [4096] * 3


def test_longrope_is_chosen_by_the_original_length(tmp_path: Path) -> None:
    """Prompts below and above 64 positions, in turn and in chunks. The short ones don't decode beyond."""
    folder = build(tmp_path, **longrope())
    engine, oracle = load(folder), oracle_of(folder)
    assert engine.model.short_reach == 64
    for total in (50, 96, 64, 65, 50):
        ids, kept = IDS[:total], np.union1d(KEPT[total > KEPT], [total - 1])
        session = engine.prefill(sparse(ids, kept), chunk=16)
        np.testing.assert_allclose(session.logits, oracle.logits(ids, kept)[-1], **CLOSE)
    long, short = engine.prefill(sparse(IDS, KEPT)), engine.prefill(sparse(IDS[:56], KEPT[:27]))
    more = prompt_ids(8, seed=2)
    for _ in range(2):
        for session, ids, kept in ((long, IDS, KEPT), (short, IDS[:56], KEPT[:27])):
            whole = np.concatenate([ids, more])
            expected = oracle.logits(whole, np.concatenate([kept, np.arange(len(ids), len(whole))]))[len(ids) :]
            np.testing.assert_allclose(session.extend(more.tolist()), expected, **CLOSE)
    assert len(short.sample(1, SampleParams(max_new=50, temperature=1.0))[0].ids) <= 9
    with pytest.raises(EngineUnavailable, match="10 tokens don't fit behind the 56 positions"):
        short.extend([1] * 10)
    assert len(long.extend([1] * 20)) == 20


def test_longrope_drafters_take_nothing_from_shorter_prompts(tmp_path: Path) -> None:
    folder = build(tmp_path, **longrope())
    drafter, oracle = engines.load_drafting("torch").drafter_from(load(folder)), oracle_of(folder)
    store = OnePrefix()
    for total in (60, 96, 60):
        rows = Rows()
        reading = Reading((Group("q", tokens([total - 1])),), chunk=16)
        assert drafter.read(IDS[:total], reading, rows, store).n_known == 0
        for found, layer in zip(rows.found["q"], oracle.attentions(IDS[:total]), strict=True):
            np.testing.assert_allclose(found, layer[:, -1], rtol=0, atol=1e-5)
    assert store.prefix is None


def longrope() -> dict[str, Any]:
    model_type, extra = FAMILIES["phi3-longrope"]
    return {"model_type": model_type, **extra}


def test_bidirectional_attention_is_refused(tmp_path: Path) -> None:
    folder = build(tmp_path, "gemma3_text", **GEMMA, use_bidirectional_attention=True)
    with pytest.raises(EngineUnavailable, match="attend to later ones"):
        load(folder)


def test_a_window_that_counts_kept_tokens_is_seen(tmp_path: Path) -> None:
    """What transformers does by itself is still wrong: a negative control for the families that slide."""
    engine = load(build(tmp_path, "qwen2", **FAMILIES["qwen2-sliding"][1]))
    unaware = replace(engine.model, kinds=tuple(LayerKind() for _ in engine.model.kinds))
    wrong = replace(engine, model=unaware).prefill(sparse(IDS, KEPT)).logits
    assert np.abs(wrong - engine.prefill(sparse(IDS, KEPT)).logits).max() > 0.1
    np.testing.assert_allclose(
        replace(engine, model=unaware).prefill(sparse(IDS, np.arange(96))).logits,
        engine.prefill(sparse(IDS, np.arange(96))).logits,
        **CLOSE,
    )


@pytest.mark.parametrize(("model_type", "masked"), [("llama", False), ("qwen2", False), ("gemma2", True)])
def test_only_sliding_layers_get_masks(
    model_type: str, masked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = load(build(tmp_path, model_type, **(GEMMA if masked else {})))
    seen: list[Any] = []
    handle = engine.model.module.model.register_forward_pre_hook(
        lambda _, args, kwargs: seen.append(kwargs.get("attention_mask")), with_kwargs=True
    )
    engine.prefill(sparse(IDS, KEPT), chunk=16)
    handle.remove()
    assert len(seen) == 3
    assert all((mask is not None) is masked for mask in seen)


def test_sdpa_runs_without_a_mask_where_nothing_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = load(build(tmp_path, "qwen2", **{**FAMILIES["qwen2-sliding"][1], "sliding_window": 96}))
    masks: list[Any] = []
    sdpa = torch.nn.functional.scaled_dot_product_attention

    def spy(*args: Any, **kwargs: Any) -> Any:
        masks.append(kwargs["attn_mask"])
        return sdpa(*args, **kwargs)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", spy)
    engine.prefill(sparse(IDS, KEPT))
    assert masks == [None] * 3


def test_a_known_prefix_keeps_its_positions(tmp_path: Path) -> None:
    """A drafter that slides reads the same with a prefix from a run before."""
    drafter = load(build(tmp_path, "gemma3_text", **FAMILIES["gemma3"][1]))
    drafter = engines.load_drafting("torch").drafter_from(drafter)
    reading = Reading((Group("q", tokens([80, 95]), local=True),), chunk=16)
    store = OnePrefix()
    rows = [Rows(), Rows()]
    facts = [drafter.read(IDS, reading, one, store) for one in rows]
    assert [one.n_known for one in facts] == [0, 80]
    np.testing.assert_array_equal(rows[0].found["q"], rows[1].found["q"])


@dataclass
class OnePrefix:
    prefix: KnownPrefix | None = None

    def find(self, ids: np.ndarray, n_layers: int, *, chunk: int, states: tuple[int, ...]) -> KnownPrefix | None:
        return self.prefix

    def keep(self, prefix: KnownPrefix) -> None:
        self.prefix = prefix


def test_a_scorer_of_a_sliding_layer_alone_is_refused(tmp_path: Path) -> None:
    drafter = engines.load_drafting("torch").drafter_from(load(build(tmp_path, "gemma3_text", **FAMILIES["gemma3"][1])))
    with pytest.raises(EngineUnavailable, match="gemfilter found nothing: 2 layers of tiny slide"):
        score_in_windows(drafter, tokenized(IDS), GemFilter(share=1.0))
    scores, _ = score_in_windows(drafter, tokenized(IDS), GemFilter(share=0.67))
    assert scores.values.any()
    short, _ = score_in_windows(drafter, tokenized(IDS[:24]), GemFilter(share=1.0))
    assert short.values.any()


def test_a_look_ahead_beyond_the_window_sees_nothing_of_the_prompt(tmp_path: Path) -> None:
    watch = TorchWatch((Group("q", tokens([9]), local=True),), 0, 4, (LayerKind(window=3),), 10)
    q, keys = torch.ones(2, 1, 4), torch.ones(2, 10, 4)
    watch.see(0, q, keys, 1.0)
    rows = Rows()
    watch.emit(rows)
    np.testing.assert_array_equal(rows.found["q"][0], np.zeros((2, 4)))


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["torch", "reference"])
def test_damaged_folders_are_named(damage: str, name: str, tmp_path: Path) -> None:
    folder = build(tmp_path, "llama")
    info = describe(folder)
    harm(folder, damage)
    with pytest.raises(ModelUnavailable) as caught:
        engines.load(name).load_engine(folder, "tiny", tokenizer=ByteTokenizer(), chat=ChatFrame(), info=info)
    assert caught.value.hint


@pytest.fixture
def engine(tmp_path: Path) -> Any:
    return load(build(tmp_path, "llama"))


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_error_on_the_way_leaves_the_model_clean(engine: Any, error: type[BaseException]) -> None:
    before = engine.prefill(sparse(IDS, KEPT)).logits
    drafter = engines.load_drafting("torch").drafter_from(engine, 2)
    scores = score(drafter, tokenized(IDS), first(2)).values
    state = _state(engine.model.module)

    def fail(*_: Any) -> None:
        raise error("on the way")

    handle = engine.model.module.model.layers[1].mlp.register_forward_hook(fail)
    expected = EngineUnavailable if error is RuntimeError else error
    with pytest.raises(expected, match="on the way"):
        engine.prefill(sparse(IDS, KEPT), chunk=8)
    with pytest.raises(expected, match="on the way"):
        score(drafter, tokenized(IDS), first(2))
    handle.remove()
    assert _state(engine.model.module) == state
    np.testing.assert_array_equal(engine.prefill(sparse(IDS, KEPT)).logits, before)
    np.testing.assert_array_equal(score(drafter, tokenized(IDS), first(2)).values, scores)


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
    drafter = engines.load_drafting("torch").drafter_from(engine, 2)
    own = {id(parameter) for parameter in engine.model.module.parameters()}
    assert {id(parameter) for parameter in drafter.model.module.parameters()} < own
    assert len(engine.model.module.model.layers) == 3
    assert drafter.info.n_layers == 2


def test_a_drafter_of_fewer_layers_reads_fewer_weights(tmp_path: Path) -> None:
    folder = build(tmp_path, "qwen2", tie_word_embeddings=True)
    drafter: Any = engines.load_drafting("torch").load_drafter(
        folder, "tiny", tokenizer=ByteTokenizer(), info=describe(folder), n_layers=1
    )
    assert len(drafter.model.module.model.layers) == 1
    assert drafter.info.n_params < sum(p.numel() for p in load(folder).model.module.parameters())


def test_two_drafters_in_threads_see_their_own_attention(engine: Any, tmp_path: Path) -> None:
    drafter = engines.load_drafting("torch").drafter_from(engine)
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
    monkeypatch.setattr("agentctx.spec.engines.sampling.BATCH_BYTES", 1)
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
from agentctx.prompt import SparsePrompt
from agentctx.spec import engines
assert engines.available()[0][:2] == ("torch", True)
assert "torch" not in sys.modules and "transformers" not in sys.modules
load = engines.load("torch").load_engine
engine = load(folder, "t", tokenizer=ByteTokenizer(), chat=ChatFrame(), info=describe(folder))
engine.prefill(sparse(prompt_ids(96), KEPT)).sample(2, SampleParams(max_new=3))
score(engines.load_drafting("torch").drafter_from(engine, 1), tokenized(prompt_ids(96)), first(1))
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_torch_the_hint_says_what_to_install() -> None:
    code = """
import sys; sys.modules["torch"] = None
from agentctx.errors import EngineUnavailable
from agentctx.prompt import SparsePrompt
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
