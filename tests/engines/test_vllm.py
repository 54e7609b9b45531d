"""What only vLLM can get wrong: prefix cache, chunks, preemption, other requests, bad requests over HTTP."""

from __future__ import annotations

import inspect
import json
import os
import random
import socket
import subprocess
import sys
import textwrap
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_models import SHAPES, Oracle, build, describe, log_softmax, oracle_of, prompt_ids, sparse

from agentctx.errors import EngineUnavailable
from agentctx.models import info as model_info
from agentctx.models.counting import tokenizer_of
from agentctx.models.folder import ModelFolder
from agentctx.prompt import SparsePrompt
from agentctx.spec import engines
from agentctx.spec.engines import vllm_plugin
from agentctx.spec.engines.byte_tokenizer import VOCAB_SIZE, ByteTokenizer
from agentctx.spec.engines.vllm_plugin import contract, frontend, hashing, seams
from agentctx.spec.engines.vllm_plugin.contract import LENGTH, SPANS
from agentctx.spec.engines.vllm_requests import Ask
from agentctx.spec.protocols import ChatFrame, SampleParams

pytest.importorskip("vllm", reason="make test-vllm runs this suite")
pytest.importorskip("torch")

V2 = bool(os.environ.get("AGENTCTX_TEST_VLLM_V2"))
CONTEXT = 1024
NEW = 12
BLOCK = 32


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shape = {**SHAPES["vllm"], "max_position_embeddings": CONTEXT}
    return build(tmp_path_factory.mktemp("tiny"), "llama", tie_word_embeddings=False, **shape)


@pytest.fixture(scope="module")
def truth(tiny: Path) -> Oracle:
    return oracle_of(tiny)


@pytest.fixture(scope="module")
def engine(tiny: Path) -> Any:
    """Chunks of 64 tokens, and blocks for fewer requests than are sent at once."""
    return load(
        tiny,
        max_model_len=768,
        max_num_batched_tokens=64,
        max_num_seqs=6,
        block_size=BLOCK,
        num_gpu_blocks_override=26,
    )


def load(folder: Path, **options: Any) -> Any:
    module: Any = engines.load("vllm")
    return module.load_engine(
        folder, "tiny", tokenizer=ByteTokenizer(), chat=ChatFrame(), info=describe(folder), **options
    )


def case(seed: int, total: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """(ids, kept) of a prompt that keeps its head, its tail and some chunks between."""
    draw = random.Random(seed)
    kept = {*range(4), *range(total - 8, total)}
    for start in range(0, total, 8):
        if draw.random() < share:
            kept |= set(range(start, min(total, start + 8)))
    return prompt_ids(total, seed=seed), np.asarray(sorted(kept))


def ask(prompt: SparsePrompt, n_new: int = NEW) -> Ask:
    ids = tuple(int(i) for i in prompt.ids)
    return Ask(ids, contract.encode(prompt), (), SampleParams(max_new=n_new))


def dense(ids: np.ndarray, n_new: int = NEW) -> Ask:
    return Ask(tuple(int(i) for i in ids), {}, (), SampleParams(max_new=n_new))


def follows(oracle: Oracle, ids: np.ndarray, kept: np.ndarray, tokens: tuple[int, ...]) -> bool:
    """Each token is the masked dense model's best one after those before it."""
    n, last = len(ids), len(ids) + len(tokens)
    logits = oracle.logits(np.concatenate([ids, tokens]), np.concatenate([kept, np.arange(n, last)]))
    return bool(len(tokens)) and tuple(logits[n - 1 : last - 1].argmax(-1).tolist()) == tokens


CASES = [
    case(seed, total, share) for seed, (total, share) in enumerate([(200, 0.3), (700, 0.2), (333, 0.5), (500, 0.3)])
]


def test_requests_side_by_side_equal_the_masked_dense_model_again_and_again(engine: Any, truth: Oracle) -> None:
    """Sparse ones beside dense ones of the same ids, in chunks, with preemption; then from the prefix cache."""
    from vllm.v1.core.sched.scheduler import Scheduler

    n_preempted, old = 0, Scheduler._preempt_request

    def counting(*args: Any, **kwargs: Any) -> Any:
        nonlocal n_preempted
        n_preempted += 1
        return old(*args, **kwargs)

    asks, places = [], []
    for ids, kept in CASES:
        asks += [ask(sparse(ids, kept), 48), dense(ids[kept], 48)]
        places += [(ids, kept), (ids[kept], np.arange(len(kept)))]
    Scheduler._preempt_request = counting
    try:
        rounds = [engine.carrier.ask(asks) for _ in range(2)]
    finally:
        Scheduler._preempt_request = old
    expected = [answer.ids[0] for answer in rounds[0]]
    for (ids, kept), tokens in zip(places, expected, strict=True):
        assert follows(truth, ids, kept, tokens)
    assert [answer.ids[0] for answer in rounds[1]] == expected
    assert n_preempted > 0
    alone = [engine.carrier.ask([one])[0] for one in asks[:2] for _ in range(2)]
    assert alone[1].n_cached >= BLOCK
    assert alone[3].n_cached >= BLOCK
    assert [answer.ids[0] for answer in alone] == [expected[0], expected[0], expected[1], expected[1]]
    assert len({expected[0], expected[1]}) == 2  # the positions matter in this model


def test_a_session_says_how_much_it_found_in_the_cache(engine: Any) -> None:
    ids, kept = case(77, 150, 0.5)
    first, second = (engine.prefill(sparse(ids, kept)) for _ in range(2))
    assert first.n_cached == 0
    assert second.n_cached == (len(kept) - 1) // BLOCK * BLOCK
    np.testing.assert_allclose(first.logits, second.logits, rtol=0, atol=1e-4)


def test_moving_one_run_by_one_is_seen(engine: Any) -> None:
    ids, kept = CASES[0]
    runs = sparse(ids, kept).runs()
    first, end, _ = next(run for run in runs[1:-1] if kept[run[1]] > kept[run[1] - 1] + 1)
    moved = kept.copy()
    moved[first:end] += 1
    right = engine.prefill(sparse(ids, kept)).logits
    wrong = engine.prefill(SparsePrompt(ids[kept], moved.astype(np.int32), len(ids))).logits
    assert np.abs(right - wrong).max() > 0.01


def test_without_positions_in_the_hash_a_dense_request_gets_wrong_tokens(engine: Any, truth: Oracle) -> None:
    """The negative control: with the function that vLLM has, the same ids at other positions share their blocks."""
    ids, kept = case(91, 300, 0.3)
    places = np.arange(len(kept))
    hashes = [patch for patch in vllm_plugin.state().patches if patch.name == seams.BLOCK_KEYS.name]
    assert len(hashes) >= 1
    for patch in hashes:
        patch.undo()
    try:
        engine.carrier.ask([ask(sparse(ids, kept))])
        assert not follows(truth, ids[kept], places, engine.carrier.ask([dense(ids[kept])])[0].ids[0])
    finally:
        for patch in hashes:
            patch.apply()
        engine.carrier.llm.reset_prefix_cache()
    engine.carrier.ask([ask(sparse(ids, kept))])
    assert follows(truth, ids[kept], places, engine.carrier.ask([dense(ids[kept])])[0].ids[0])


def test_what_is_dense_shares_blocks_with_ordinary_requests(engine: Any) -> None:
    ids = prompt_ids(200, seed=55)
    kept = np.asarray([*range(100), *range(150, 200)])
    engine.carrier.ask([dense(ids)])
    assert engine.carrier.ask([ask(sparse(ids, kept))])[0].n_cached == 96  # three whole blocks of the first hundred


def test_the_plugin_is_applied_once_and_whole(engine: Any) -> None:
    before = vllm_plugin.state()
    vllm_plugin.register()
    assert vllm_plugin.state() is before
    assert before.active
    for patch in before.patches:
        assert getattr(patch.owner, patch.name) is patch.new
    names = {patch.name for patch in before.patches}
    assert names >= {"process_inputs", "_model_forward", "resolve_model_state_cls", seams.BLOCK_KEYS.name, "__init__"}


def test_setups_that_were_not_tried_are_refused_by_name(engine: Any) -> None:
    processor = engine.carrier.llm.llm_engine.input_processor
    assert processor._agentctx_refused is None
    processor._agentctx_refused = "speculative decoding by 'dflash' was not tried"
    try:
        with pytest.raises(EngineUnavailable, match="dflash"):
            engine.prefill(sparse(*CASES[0]))
    finally:
        processor._agentctx_refused = None


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"kv_transfer_config": object()}, "KV connector"),
        ({"speculative_config": type("S", (), {"method": "dflash"})}, "speculative decoding by DFlash"),
        ({"speculative_config": type("S", (), {"method": "mtp"})}, "by native MTP: it was not tried"),
    ],
)
def test_configurations_are_judged(engine: Any, changes: dict[str, Any], says: str) -> None:
    from types import SimpleNamespace

    from agentctx.spec.engines.vllm_plugin import setups

    real = engine.carrier.llm.llm_engine.vllm_config
    names = ("parallel_config", "kv_transfer_config", "speculative_config", "model_config")
    config = SimpleNamespace(**{name: getattr(real, name) for name in names})
    assert setups.refused(config) is None
    assert says in str(setups.refused(SimpleNamespace(**{**vars(config), **changes})))


@pytest.mark.skipif(V2, reason="the same for both runners")
@pytest.mark.parametrize("what", ["version", "seam"])
def test_an_unknown_vllm_refuses_sparse_requests_and_is_otherwise_untouched(what: str) -> None:
    change = {
        "version": "vllm.__version__ = '0.99.0'",
        "seam": "m.generate_block_hash_extra_keys = lambda request, start, end, mm, more: None",
    }[what]
    code = f"""
import vllm, vllm.v1.core.kv_cache_utils as m
from vllm.v1.engine.input_processor import InputProcessor
from vllm.v1.worker.gpu_model_runner import GPUModelRunner
{change}
before = m.generate_block_hash_extra_keys, GPUModelRunner._model_forward
from agentctx.spec.engines import vllm_plugin
vllm_plugin.register()
state = vllm_plugin.state()
assert not state.active
assert before == (m.generate_block_hash_extra_keys, GPUModelRunner._model_forward)
params = vllm.SamplingParams(extra_args={{"specprefill_spans": [0, 2], "specprefill_len": 2}})
try: InputProcessor.process_inputs(None, "r", None, params, ())
except vllm.exceptions.VLLMValidationError as error: print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith(contract.OFF)
    assert {"version": "0.99.0 was not tried", "seam": "takes (request, start, end"}[what] in done.stdout


FAMILIES: dict[str, dict[str, Any]] = {
    "granite": {"attention_multiplier": 0.2, "logits_scaling": 2.0},
    "mistral": {"sliding_window": None},
    "phi3": {"sliding_window": None, "num_key_value_heads": 4},
    "qwen3": {"head_dim": 32},
}


@pytest.mark.skipif(V2, reason="the models are the same for both runners")
@pytest.mark.parametrize("family", FAMILIES)
def test_every_supported_family_keeps_its_positions(family: str, tmp_path: Path) -> None:
    folder = build(tmp_path, family, **{**SHAPES["vllm"], **FAMILIES[family]})
    ids, kept = case(5, 200, 0.4)
    session, more = load(folder, num_gpu_blocks_override=16).prefill(sparse(ids, kept)), prompt_ids(4, seed=2)
    whole = np.concatenate([kept, np.arange(200, 204)])
    expected = log_softmax(oracle_of(folder).logits(np.concatenate([ids, more]), whole))
    np.testing.assert_allclose(session.logits, expected[199], rtol=0, atol=1e-4)
    np.testing.assert_allclose(session.extend(more.tolist()), expected[200:], rtol=0, atol=1e-4)


@pytest.mark.model
@pytest.mark.skipif(V2, reason="too slow in Triton's interpreter")
def test_greedy_text_equals_torch_on_a_real_model(model_folder: ModelFolder) -> None:
    tokenizer, info = tokenizer_of(model_folder), model_info.info(model_folder)
    code = inspect.getsource(textwrap)[:3000]
    text = f"<|im_start|>user\n{code}\nWhat does fill() return?<|im_end|>\n<|im_start|>assistant\n"
    ids = np.asarray(tokenizer.encode(text, special=True)[0], np.int32)
    kept = np.asarray([*range(60), *range(200, 330), *range(len(ids) - 60, len(ids))])
    found = []
    for name, options in (("torch", {}), ("vllm", {"max_model_len": 2048})):
        module: Any = engines.load(name)
        one = module.load_engine(
            model_folder.path, "smollm2", tokenizer=tokenizer, chat=ChatFrame(), info=info, **options
        )
        found.append(one.prefill(sparse(ids, kept)).sample(1, SampleParams(max_new=24))[0].text)
    assert found[0] == found[1]
    assert len(found[0]) > 10


# ---------------------------------------------------------------- a server


@pytest.fixture(scope="module")
def server(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log"
    # Small chunks are tried above. Seeded requests whose prompt is cut end vLLM 0.32's V1 runner on a CPU.
    options = ("--max-num-batched-tokens", "2048", "--max-num-seqs", "8", "--block-size", str(BLOCK), "--enforce-eager")
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(tiny)]
    command += ["--served-model-name", "tiny", "--port", str(port), "--host", "127.0.0.1", "--dtype", "float32"]
    command += ["--skip-tokenizer-init", "--enable-prompt-tokens-details", *options]
    url = f"http://127.0.0.1:{port}"
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 240
        while not alive(url):
            assert process.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(1)
        yield url
    finally:
        process.terminate()
        process.wait(60)


def alive(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def post(url: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    data = json.dumps(body).encode()
    request = urllib.request.Request(f"{url}/v1/completions", data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def body(prompt: SparsePrompt | None, ids: list[int] | None = None, **more: Any) -> dict[str, Any]:
    extra = {} if prompt is None else contract.encode(prompt)
    return {
        "model": "tiny",
        "prompt": prompt.ids.tolist() if prompt is not None else ids,
        "max_tokens": NEW,
        "temperature": 0,
        "ignore_eos": True,
        "return_token_ids": True,
        "vllm_xargs": extra,
        **more,
    }


def bad_requests(n: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """n malformed sparse requests, a different one each time: (kind, body)."""
    draw = random.Random(4)
    for i in range(n):
        total = draw.randrange(20, 900)
        ids, kept = case(1000 + i, total, 0.3)
        good = body(sparse(ids, kept))
        spans, length = good["vllm_xargs"][SPANS], good["vllm_xargs"][LENGTH]
        at = draw.randrange(0, len(spans) // 2) * 2
        kinds: dict[str, Any] = {
            "overlapping": {SPANS: [*spans[:2], *spans], LENGTH: length},
            "unsorted": {SPANS: [*spans[-2:], *spans], LENGTH: length},
            "reversed": {SPANS: [*spans[:at], spans[at + 1], spans[at], *spans[at + 2 :]], LENGTH: length},
            "out of range": {SPANS: [*spans[:-1], length + 1], LENGTH: length},
            "negative": {SPANS: [-draw.randrange(1, 99), *spans[1:]], LENGTH: length},
            "huge": {SPANS: [*spans[:-1], 2 ** draw.randrange(31, 100)], LENGTH: length},
            "huge length": {SPANS: spans, LENGTH: 2 ** draw.randrange(25, 100)},
            "wrong length": {SPANS: spans[2:] or [0, 1], LENGTH: length},
            "missing tail": {SPANS: spans, LENGTH: length + draw.randrange(1, 50)},
            "odd": {SPANS: spans[:-1], LENGTH: length},
            "float": {SPANS: [*spans[:-1], float(length)], LENGTH: length},
            "text": {SPANS: ",".join(map(str, spans)), LENGTH: length},
            "text inside": {SPANS: [*spans[:-1], "x"], LENGTH: length},
            "nested": {SPANS: [spans], LENGTH: length},
            "empty": {SPANS: [], LENGTH: length},
            "no length": {SPANS: spans},
            "only a length": {LENGTH: length},
            "beyond the context": {SPANS: [*spans[:-2], CONTEXT * 2 - 8, CONTEXT * 2], LENGTH: CONTEXT * 2},
            "max_tokens beyond the context": good["vllm_xargs"],
            "beam search": good["vllm_xargs"],
        }
        kind = list(kinds)[i % len(kinds)]
        more: dict[str, Any] = {}
        if kind == "max_tokens beyond the context":
            more = {"max_tokens": CONTEXT - length + 2}
        if kind == "beam search":
            more = {"use_beam_search": True, "n": 2}
        yield kind, {**good, "vllm_xargs": kinds[kind], **more}


@pytest.mark.skipif(V2, reason="the front end is the same for both runners")
def test_bad_requests_get_a_reason_and_harm_nobody(server: str, truth: Oracle) -> None:
    ids, kept = CASES[1]
    good = [body(sparse(ids, kept)), body(None, ids[kept].tolist())]
    expected = [tuple(post(server, one)[1]["choices"][0]["token_ids"]) for one in good]
    assert follows(truth, ids, kept, expected[0])
    assert follows(truth, ids[kept], np.arange(len(kept)), expected[1])
    kinds = set()
    for i, (kind, bad) in enumerate(bad_requests(200)):
        status, said = post(server, bad)
        assert status == 400, (kind, said)
        message = said["error"]["message"]
        assert contract.ACTIVE in message or "specprefill" in message or "extra_args" in message, (kind, message)
        kinds.add(kind)
        if i % 20 == 0:
            for request, tokens in zip(good, expected, strict=True):
                status, answer = post(server, request)
                assert status == 200
                assert tuple(answer["choices"][0]["token_ids"]) == tokens
    assert len(kinds) == 20
    assert alive(server)


@pytest.mark.skipif(V2, reason="the front end is the same for both runners")
def test_the_client_over_http(server: str, tiny: Path, truth: Oracle) -> None:
    module: Any = engines.load("vllm")
    info = replace(describe(tiny), folder=str(tiny))
    engine = module.connect(server, tokenizer=ByteTokenizer(), chat=ChatFrame(), info=info)
    ids, kept = CASES[2]
    session = engine.prefill(sparse(ids, kept))
    once = session.sample(2, SampleParams(max_new=NEW))
    assert once[0].ids == once[1].ids
    assert follows(truth, ids, kept, once[0].ids)
    hot = SampleParams(max_new=NEW, temperature=1.5, seed=7)
    three = [one.ids for one in session.sample(3, hot)]
    assert len(set(three)) == 3
    assert [one.ids for one in session.sample(3, hot)] == three
    assert session.sample(1, replace(hot, seed=9))[0].ids == three[2]
    assert engine.prefill(sparse(ids, kept)).n_cached >= BLOCK
    assert not engine.caps.logprobs
    for told in (lambda: session.logits, lambda: session.extend([1]), lambda: session.extend([])):
        with pytest.raises(EngineUnavailable, match="doesn't tell the logits"):
            told()
    with pytest.raises(EngineUnavailable, match="serves tiny"):
        module.connect(server, "other", tokenizer=ByteTokenizer(), chat=ChatFrame(), info=info)
    assert max(once[0].ids) < VOCAB_SIZE


@pytest.mark.skipif(V2, reason="the front end is the same for both runners")
def test_a_salt_keeps_requests_apart_in_the_prefix_cache(server: str) -> None:
    """`bench qps` gives each request one of its own: then neither way is served from the cache."""
    ids, kept = case(31, 400, 0.5)
    for way, one in (("dense", body(None, ids.tolist())), ("sparse", body(sparse(ids, kept)))):
        cached = []
        for salt in ("a", "a", "b"):
            usage = post(server, {**one, "cache_salt": f"{way}-{salt}"})[1]["usage"]
            cached.append(usage["prompt_tokens_details"]["cached_tokens"])
        assert cached[1] >= BLOCK
        assert (cached[0], cached[2]) == (0, 0)


@pytest.mark.skipif(V2, reason="the front end is the same for both runners")
async def test_the_load_of_bench_qps(server: str, truth: Oracle) -> None:
    from agentctx.bench.speed.open_loop import ANSWERED, hold
    from agentctx.spec.engines.vllm_http import connect
    from agentctx.spec.engines.vllm_load import open_load

    ids, kept = CASES[2]
    asks = [dense(ids), ask(sparse(ids, kept))]
    async with open_load(connect(server, None, None), 60) as load:
        outcomes = await hold(lambda number: load.read(asks[number % 2], f"own-{number}"), 20.0, 6, 60.0)
    assert [(one.kind, one.n_cached) for one in outcomes] == [(ANSWERED, 0)] * 6
    for one in outcomes:
        assert one.first is not None
        assert one.whole is not None
        assert 0 < one.first < one.whole


def test_no_server_is_said_so(tiny: Path) -> None:
    module: Any = engines.load("vllm")
    with pytest.raises(EngineUnavailable, match=r"127\.0\.0\.1:9") as caught:
        module.connect("http://127.0.0.1:9", tokenizer=ByteTokenizer(), chat=ChatFrame(), info=describe(tiny))
    assert caught.value.hint


def test_the_refusing_front_end_lets_others_pass() -> None:
    made = frontend.refusals("a test")
    assert {patch.name for patch in made} == {"process_inputs", "to_beam_search_params"}
    assert hashing.patches()[0].name == seams.BLOCK_KEYS.name
