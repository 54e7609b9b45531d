"""What the contract can't say of OpenVINO: exports, weights of 8 bits, and requests that share nothing."""

from __future__ import annotations

import inspect
import os
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_models import CLOSE, KEPT, MODELS, Oracle, build, describe, oracle_of, prepare, prompt_ids, sparse

from agentctx.errors import EngineUnavailable, ModelUnavailable
from agentctx.exports import export_path
from agentctx.models import info as model_info
from agentctx.models.counting import tokenizer_of
from agentctx.models.exports import exported, make_export
from agentctx.models.folder import ModelFolder
from agentctx.spec import engines
from agentctx.spec.engines.byte_tokenizer import ByteTokenizer
from agentctx.spec.protocols import ChatFrame, Engine, SampleParams

if "openvino" not in os.environ.get("AGENTCTX_TEST_ENGINES", ""):
    for package in ("openvino", "optimum"):
        pytest.importorskip(package, reason="make test-openvino runs these")

IDS = prompt_ids(96, seed=5)


def load(folder: Path) -> Engine:
    return engines.load("openvino").load_engine(
        folder, "tiny", tokenizer=ByteTokenizer(), chat=ChatFrame(), info=describe(folder)
    )


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("models") / "tiny", **MODELS["llama"])


@pytest.fixture(scope="module")
def engine(tiny: Path) -> Engine:
    prepare("openvino", tiny)
    return load(tiny)


def test_without_an_export_it_says_how_to_make_one(tmp_path: Path) -> None:
    folder = build(tmp_path / "tiny", **MODELS["llama"])
    with pytest.raises(ModelUnavailable, match="has not been exported") as caught:
        load(folder)
    assert caught.value.hint == f"agentctx models fetch {folder} --engine openvino"


def test_a_stale_or_damaged_export_is_not_run(tmp_path: Path) -> None:
    folder = build(tmp_path / "tiny", **MODELS["llama"])
    prepare("openvino", folder)
    graph = export_path(folder, "openvino") / "openvino_model.bin"
    whole = graph.read_bytes()
    graph.write_bytes(whole[:-100])
    with pytest.raises(ModelUnavailable, match="damaged"):
        load(folder)
    graph.write_bytes(whole)
    assert load(folder).prefill(sparse(IDS, KEPT)).logits.any()
    weights = folder / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-4:] = b"\0\0\0\0"
    weights.write_bytes(data)
    assert exported(folder) is None
    with pytest.raises(ModelUnavailable, match="stale"):
        load(folder)


def test_a_model_that_would_go_wrong_is_not_exported(tmp_path: Path) -> None:
    folder = build(tmp_path / "tiny", "gpt2", n_embd=32, n_head=4, n_layer=2)
    with pytest.raises(EngineUnavailable, match="gpt2"):
        make_export(ModelFolder("tiny", folder, None), "openvino", "int8", engines.load_exporter("openvino"))
    assert not export_path(folder, "openvino").exists()


def test_candidates_from_one_prefill_equal_each_alone(engine: Engine) -> None:
    hot = SampleParams(max_new=10, temperature=1.0, seed=4)
    session = engine.prefill(sparse(IDS, KEPT))
    together = session.sample(3, hot)
    for number, completion in enumerate(together):
        fresh = engine.prefill(sparse(IDS, KEPT))
        alone = fresh.sample(1, SampleParams(max_new=10, temperature=1.0, seed=4 + number))[0]
        assert alone.ids == completion.ids


def test_rows_keep_what_is_theirs_when_others_end(engine: Engine) -> None:
    session: Any = engine.prefill(sparse(IDS, KEPT))
    run = engine.model.run(session.held.state, 4)  # type: ignore[attr-defined]
    run.forward([[1], [2], [3], [4]], [96])
    run.beams = [1, 3]
    left = run.forward([[7], [8]], [97])[:, -1]
    np.testing.assert_allclose(left[0], session.extend([2, 7])[-1], **CLOSE)
    np.testing.assert_allclose(left[1], session.extend([4, 8])[-1], **CLOSE)


def test_an_error_in_a_run_leaves_the_model_clean(engine: Engine) -> None:
    session: Any = engine.prefill(sparse(IDS, KEPT))
    expected = session.extend([1, 2, 3])
    run = engine.model.run(session.held.state)  # type: ignore[attr-defined]
    run.beams = [0, 0, 0]  # one id for three rows
    with pytest.raises(EngineUnavailable, match="OpenVINO failed"):
        run.forward([[5]], [96])
    np.testing.assert_array_equal(session.extend([1, 2, 3]), expected)
    np.testing.assert_array_equal(engine.prefill(sparse(IDS, KEPT)).logits, session.logits)


def test_the_graph_computes_the_logits_that_are_asked_for_only(engine: Engine) -> None:
    run = engine.model.run()  # type: ignore[attr-defined]
    assert run.forward([IDS], np.arange(96)).shape == (1, 1, engine.info.vocab_size)
    assert run.forward([IDS[:9]], np.arange(96, 105), last=4).shape == (1, 4, engine.info.vocab_size)


# ---------------------------------------------------------------- SmolLM2 with weights of 8 and of 4 bits

N = 256
KEPT_OF_N = np.asarray([*range(20), *range(64, 90), *range(150, 170), *range(N - 50, N)])


@pytest.fixture(scope="module", params=["int8", "int4"])
def smollm2(
    request: pytest.FixtureRequest, model_folder: ModelFolder, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Any, Oracle, np.ndarray]:
    path = tmp_path_factory.mktemp("models") / "smollm2"
    path.symlink_to(model_folder.path)  # the export lies beside it
    folder = ModelFolder("smollm2", path, model_folder.manifest)
    make_export(folder, "openvino", request.param, engines.load_exporter("openvino"))
    tokenizer = tokenizer_of(folder)
    engine = engines.load("openvino").load_engine(
        path, "smollm2", tokenizer=tokenizer, chat=ChatFrame(), info=model_info.info(folder)
    )
    code = inspect.getsource(textwrap)[:3000]
    text = f"<|im_start|>user\n{code}\nWhat does fill() return?<|im_end|>\n<|im_start|>assistant\n"
    ids = np.asarray(tokenizer.encode(text, special=True)[0], np.int32)
    return engine, oracle_of(path), np.concatenate([ids[: N - 40], ids[-40:]])


@pytest.mark.model
@pytest.mark.slow
def test_narrow_weights_stay_near_the_masked_dense_model(smollm2: tuple[Any, Oracle, np.ndarray]) -> None:
    engine, oracle, ids = smollm2
    more = [28, 198, 504]
    session = engine.prefill(sparse(ids, KEPT_OF_N), chunk=64)
    whole, kept = np.concatenate([ids, more]), np.concatenate([KEPT_OF_N, np.arange(N, N + 3)])
    expected = oracle.logits(whole, kept)[N - 1 :]
    found = np.concatenate([session.logits[None], session.extend(more)])
    compact = engine.prefill(sparse(ids[KEPT_OF_N], np.arange(len(KEPT_OF_N)))).logits
    # Measured: 0.004 to 0.025 at the original positions, 0.097 at compact ones; single logits are off by up to 1.5,
    # mostly all together, which changes no probability. So divergence is compared, not logits.
    worst = max(divergence(one, other) for one, other in zip(expected, found, strict=True))
    if engine.form == "int8 on cpu":
        assert worst < 0.05
        assert divergence(expected[0], compact) > 0.06
    else:  # 0.15 to 0.39: four bits cost so small a model as much as wrong positions do
        assert worst < 0.6


def divergence(expected: np.ndarray, found: np.ndarray) -> float:
    """Kullback-Leibler, in nats, between the distributions of two rows of logits."""
    logs = [
        row - row.max() - np.log(np.exp(row - row.max()).sum()) for row in (np.float64(expected), np.float64(found))
    ]
    return float((np.exp(logs[0]) * (logs[0] - logs[1])).sum())


@pytest.mark.model
@pytest.mark.slow
def test_narrow_weights_still_write_text(smollm2: tuple[Any, Oracle, np.ndarray]) -> None:
    engine, _, ids = smollm2
    greedy = engine.prefill(sparse(ids, np.arange(N))).sample(2, SampleParams(max_new=8))
    assert greedy[0].ids == greedy[1].ids
    assert greedy[0].text.isprintable() or "\n" in greedy[0].text
