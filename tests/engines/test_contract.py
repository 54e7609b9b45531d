"""The engine contract (docs/architecture.md): the same tests for every engine, on the same folders."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from engine_models import KEPT, Oracle, prompt_ids, score, sparse, tokenized

from agentctx.errors import ConfigError, EngineUnavailable
from agentctx.prompt import SparsePrompt
from agentctx.spec import engines
from agentctx.spec.engines.byte_tokenizer import END_OF_TURN, EOS
from agentctx.spec.protocols import Drafter, Engine, SampleParams
from agentctx.spec.reading import Aside, Group, Reading, Reduce, Rows, tokens
from agentctx.spec.scorers import make
from agentctx.spec.scorers.base import Shallow
from agentctx.spec.scorers.published import SpecPrefill

Same = Callable[..., None]  # the fixture `same_logits`
IDS = prompt_ids(96, seed=5)
ALL = np.arange(96)


def test_keeping_everything_equals_a_dense_forward(engine: Engine, oracle: Oracle, same_logits: Same) -> None:
    session = engine.prefill(sparse(IDS, ALL))
    assert session.logits.shape == (engine.info.vocab_size,)
    same_logits(session.logits, oracle.logits(IDS, ALL)[-1])


@pytest.mark.parametrize("kept", [KEPT, KEPT[3:], np.asarray([95]), np.arange(1, 96, 2)], ids=len)
def test_sparse_equals_a_dense_forward_with_the_dropped_tokens_masked(
    engine: Engine, oracle: Oracle, kept: np.ndarray, same_logits: Same
) -> None:
    same_logits(engine.prefill(sparse(IDS, kept)).logits, oracle.logits(IDS, kept)[-1])


def test_decoding_continues_at_the_original_length(engine: Engine, oracle: Oracle, same_logits: Same) -> None:
    more = prompt_ids(6, seed=2)
    whole = np.concatenate([IDS, more])
    session = engine.prefill(sparse(IDS, KEPT))
    expected = oracle.logits(whole, np.concatenate([KEPT, np.arange(96, 102)]))[96:]
    same_logits(session.extend(more.tolist()), expected)
    assert session.extend([]).shape == (0, engine.info.vocab_size)


def test_greedy_sampling_follows_the_masked_dense_model(engine: Engine, oracle: Oracle) -> None:
    completion = engine.prefill(sparse(IDS, KEPT)).sample(1, SampleParams(max_new=8))[0]
    ids, kept = IDS, KEPT
    for token in completion.ids:
        assert token == int(np.argmax(oracle.logits(ids, kept)[-1]))
        kept = np.append(kept, len(ids))
        ids = np.append(ids, token)
    assert len(completion.ids) >= 5


def test_a_wrong_position_is_seen(engine: Engine) -> None:
    right = engine.prefill(sparse(IDS, KEPT)).logits
    shifted = np.where((KEPT >= 20) & (KEPT <= 30), KEPT + 1, KEPT)
    shifted_logits = engine.prefill(SparsePrompt(IDS[KEPT], shifted.astype(np.int32), 96)).logits
    compact = np.arange(len(KEPT), dtype=np.int32)
    compact_logits = engine.prefill(SparsePrompt(IDS[KEPT], compact, len(KEPT))).logits
    assert np.abs(shifted_logits - right).max() > 0.01
    assert np.abs(compact_logits - right).max() > 0.1


@pytest.mark.parametrize("chunk", [1, 5, 16, 42, 43, 44])
def test_chunked_prefill_equals_one_pass(engine: Engine, chunk: int, same_logits: Same) -> None:
    one = engine.prefill(sparse(IDS, KEPT), chunk=1000)
    many = engine.prefill(sparse(IDS, KEPT), chunk=chunk)
    same_logits(many.logits, one.logits)
    same_logits(many.extend([1, 2, 3]), one.extend([1, 2, 3]))


def test_what_does_not_fit_behind_the_prompt_is_refused(engine: Engine) -> None:
    room = engine.info.max_position - 96 + 1
    with pytest.raises(EngineUnavailable, match=f"{room + 1} tokens don't fit behind the 96 positions") as caught:
        engine.prefill(sparse(IDS, KEPT)).extend([1] * (room + 1))
    assert f"room for {room}" in (caught.value.hint or "")


def test_two_sessions_do_not_disturb_each_other(engine: Engine, same_logits: Same) -> None:
    other_ids = prompt_ids(70, seed=3)
    expected_a = engine.prefill(sparse(IDS, KEPT)).extend([5, 6, 7])
    expected_b = engine.prefill(sparse(other_ids, np.arange(10, 70))).extend([8, 9])
    a, b = engine.prefill(sparse(IDS, KEPT)), engine.prefill(sparse(other_ids, np.arange(10, 70)))
    sampled = a.sample(2, SampleParams(max_new=4, temperature=1.0))
    same_logits(b.extend([8, 9]), expected_b, exact=True)
    same_logits(a.extend([5, 6, 7]), expected_a, exact=True)
    assert a.sample(2, SampleParams(max_new=4, temperature=1.0))[0].ids == sampled[0].ids
    same_logits(a.extend([5, 6, 7]), expected_a, exact=True)


def test_samples_have_their_own_seeds(engine: Engine) -> None:
    session = engine.prefill(sparse(IDS, KEPT))
    hot = SampleParams(max_new=12, temperature=2.0, seed=11)
    four = [c.ids for c in session.sample(4, hot)]
    assert len(set(four)) == 4
    assert [c.ids for c in session.sample(4, hot)] == four
    assert session.sample(1, SampleParams(max_new=12, temperature=2.0, seed=13))[0].ids == four[2]


def test_greedy_samples_are_equal(engine: Engine) -> None:
    session = engine.prefill(sparse(IDS, KEPT))
    three = session.sample(3, SampleParams(max_new=6))
    assert len({c.ids for c in three}) == 1
    assert len(three) == 3
    assert three[0].ids == session.sample(1, SampleParams(max_new=6, seed=99))[0].ids


def test_what_is_heard_is_what_is_written(engine: Engine) -> None:
    session = engine.prefill(sparse(IDS, KEPT))

    def hear(sample: int, piece: str) -> None:
        assert piece
        heard.setdefault(sample, []).append(piece)

    for params in (
        SampleParams(max_new=12),
        SampleParams(max_new=12, temperature=2.0, seed=11),
        SampleParams(max_new=12, temperature=1.5, seed=3, stop=("a", "e", "\x00")),
    ):
        heard: dict[int, list[str]] = {}
        drawn = session.sample(3, params, hear)
        assert [one.ids for one in drawn] == [one.ids for one in session.sample(3, params)]
        said = {sample: "".join(pieces) for sample, pieces in heard.items()}
        told = drawn if params.temperature else drawn[:1]
        assert said == {number: one.text for number, one in enumerate(told) if one.text}


def test_an_answer_can_go_on_past_its_end(engine: Engine) -> None:
    """As measurements want it. The token that the model takes first is declared to end answers."""
    prompt = sparse(IDS, KEPT)
    free = engine.prefill(prompt).sample(1, SampleParams(max_new=8, past_eos=True))[0]
    assert (len(free.ids), free.finish) == (8, "length")
    ending: Engine = dataclasses.replace(engine, eos=frozenset({free.ids[0]}))  # type: ignore[type-var]
    session = ending.prefill(prompt)
    assert session.sample(1, SampleParams(max_new=8))[0].ids == ()
    assert session.sample(1, SampleParams(max_new=8, past_eos=True))[0].ids == free.ids


def test_generation_stops_at_strings_lengths_and_the_end_of_the_context(engine: Engine) -> None:
    session = engine.prefill(sparse(IDS, KEPT))
    free = session.sample(1, SampleParams(max_new=10, temperature=1.5, seed=3))[0]
    assert free.finish == "length"
    assert len(free.ids) == 10
    stop = free.text[3:5]
    stopped = session.sample(1, SampleParams(max_new=10, temperature=1.5, seed=3, stop=(stop,)))[0]
    assert stopped.finish == "stop"
    assert stopped.text == free.text[: free.text.index(stop) + len(stop)]
    ids = prompt_ids(250)
    full = engine.prefill(sparse(ids, np.arange(240, 250))).sample(1, SampleParams(max_new=50, temperature=1.0))[0]
    assert len(full.ids) <= 7
    assert full.finish == "length"


@pytest.mark.parametrize(
    ("ids", "positions", "total", "says"),
    [
        ([1, 2], [0, 256], 257, "trained on 256"),
        ([1, 5000], [0, 1], 2, "token id 5000"),
        ([-1, 5], [0, 1], 2, "outside the 260"),
    ],
)
def test_what_cannot_be_right_is_refused(
    engine: Engine, ids: list[int], positions: list[int], total: int, says: str
) -> None:
    prompt = SparsePrompt(np.asarray(ids, np.int32), np.asarray(positions, np.int32), total)
    with pytest.raises(EngineUnavailable, match=says):
        engine.prefill(prompt)


# ---------------------------------------------------------------- the drafter


def oracle_scores(oracle: Oracle, prompt: np.ndarray, n_lookahead: int, kernel: int = 13) -> list[np.ndarray]:
    """The published algorithm by full attention matrices, step by step: nothing captured, nothing cached."""
    from torch import tensor
    from torch.nn.functional import avg_pool1d

    ids, steps = prompt, []
    while len(steps) < n_lookahead:
        peaks = []
        for layer in oracle.attentions(ids):
            rows = layer[:, -1, : len(prompt)]
            rows = rows / rows.sum(-1, keepdims=True)
            peaks.append(avg_pool1d(tensor(rows)[:, None], kernel, 1, kernel // 2)[:, 0].numpy().max(0))
        steps.append(np.max(peaks, axis=0))
        ids = np.append(ids, int(np.argmax(oracle.logits(ids, np.arange(len(ids)))[-1])))
        if ids[-1] in (EOS, END_OF_TURN):
            break
    return steps


def test_scores_equal_full_attention(make_drafter: Callable[..., Drafter], oracle: Oracle) -> None:
    expected = oracle_scores(oracle, IDS, 5)
    scores = score(make_drafter(), tokenized(IDS), SpecPrefill(n_lookahead=5))
    np.testing.assert_allclose(scores.values, np.mean(expected, axis=0), rtol=0, atol=1e-5)
    assert scores.values.dtype == np.float32
    assert scores.values.shape == (96,)
    assert (scores.scorer, scores.n_layers, scores.n_lookahead) == ("specprefill", 3, 5)


@pytest.mark.parametrize("at", [0, 1, 3])
def test_no_query_is_taken_after_an_eos(
    engine: Engine, make_drafter: Callable[..., Drafter], oracle: Oracle, at: int
) -> None:
    """The model's own greedy token number `at` is declared to end generation: `at` + 1 queries count."""
    ahead = engine.prefill(sparse(IDS, ALL)).sample(1, SampleParams(max_new=8))[0].ids
    assert ahead[at] not in ahead[:at]
    drafter = dataclasses.replace(make_drafter(), eos=frozenset({ahead[at]}))
    scores = score(drafter, tokenized(IDS))
    assert scores.n_lookahead == at + 1
    np.testing.assert_allclose(scores.values, np.mean(oracle_scores(oracle, IDS, at + 1), axis=0), rtol=0, atol=1e-5)


@pytest.mark.parametrize("chunk", [1, 7, 95, 1000])
def test_the_chunk_does_not_change_scores(make_drafter: Callable[..., Drafter], chunk: int) -> None:
    drafter = make_drafter()
    expected = score(drafter, tokenized(IDS))
    got = score(drafter, tokenized(IDS), chunk=chunk)
    np.testing.assert_allclose(got.values, expected.values, rtol=0, atol=1e-6)


@pytest.mark.parametrize("n_layers", [1, 2])
def test_early_exit_equals_a_truncated_model(
    engine_name: str,
    engine: Engine,
    make_drafter: Callable[..., Drafter],
    oracle: Oracle,
    n_layers: int,
    same_logits: Same,
) -> None:
    """Three ways to run the first layers (option, load, shared weights) and the oracle's truncated model."""
    import copy

    cut = copy.deepcopy(oracle)
    cut.model.model.layers = cut.model.model.layers[:n_layers]
    cut.model.config.num_hidden_layers = n_layers
    expected = np.mean(oracle_scores(cut, IDS, 4), axis=0)
    options = Shallow(SpecPrefill(n_lookahead=4), n_layers)
    shared = engines.load_drafting(engine_name).drafter_from(engine, n_layers)
    for drafter in (make_drafter(), make_drafter(n_layers), shared):
        scores = score(drafter, tokenized(IDS), options)
        np.testing.assert_allclose(scores.values, expected, rtol=0, atol=1e-5)
        assert (scores.scorer, scores.n_layers) == ("specprefill", n_layers)
    same_logits(engine.prefill(sparse(IDS, ALL)).logits, oracle.logits(IDS, ALL)[-1])


def test_scoring_refuses_long_prompts_and_bad_layers(make_drafter: Callable[..., Drafter]) -> None:
    drafter = make_drafter()
    assert score(drafter, tokenized(prompt_ids(249))).values.shape == (249,)
    with pytest.raises(EngineUnavailable, match="are 257 tokens, tiny reads 256"):
        score(drafter, tokenized(prompt_ids(250)))
    with pytest.raises(ConfigError, match="can't run 4 layers"):
        drafter.read(IDS, Reading(n_layers=4), Rows())


QUERIES = tokens([40, 41, 60, 95])


@pytest.mark.parametrize("chunk", [1, 13, 512])
def test_rows_are_those_of_full_attention(make_drafter: Callable[..., Drafter], oracle: Oracle, chunk: int) -> None:
    """Groups of queries over several chunks, mean and weighted maximum; one row per layer and head."""
    weights = np.asarray([0.5, 1.0, 0.25, 0.75], np.float32)
    groups = (Group("mean", QUERIES), Group("max", QUERIES, Reduce.MAX, weights), Group("one", tokens([7])))
    found = Rows()
    facts = make_drafter().read(IDS, Reading(groups, chunk=chunk), found)
    assert (facts.n_layers, facts.n_steps, found.states) == (3, 0, {})
    for layer, full in enumerate(oracle.attentions(IDS)):
        np.testing.assert_allclose(found.found["mean"][layer], full[:, QUERIES].mean(1), rtol=0, atol=1e-5)
        peaks = (full[:, QUERIES] * weights[None, :, None]).max(1)
        np.testing.assert_allclose(found.found["max"][layer], peaks, rtol=0, atol=1e-5)
        np.testing.assert_allclose(found.found["one"][layer], full[:, 7], rtol=0, atol=1e-5)


def test_an_aside_is_read_and_leaves_no_trace(make_drafter: Callable[..., Drafter], oracle: Oracle) -> None:
    null = prompt_ids(9, seed=5).astype(np.int32)
    aside = Aside(30, null, (Group("null", tokens(range(9))), Group("end", tokens([8]))))
    plain, both = Rows(), Rows()
    drafter = make_drafter()
    drafter.read(IDS, Reading((Group("mean", QUERIES),), hidden=(3,)), plain)
    drafter.read(IDS, Reading((Group("mean", QUERIES),), aside=aside, hidden=(3,)), both)
    np.testing.assert_allclose(np.stack(both.found["mean"]), np.stack(plain.found["mean"]), rtol=0, atol=1e-6)
    np.testing.assert_allclose(both.states[3], plain.states[3], rtol=0, atol=1e-5)
    for layer, full in enumerate(oracle.attentions(np.concatenate([IDS[:30], null]))):
        np.testing.assert_allclose(both.found["null"][layer][:, :30], full[:, 30:, :30].mean(1), rtol=0, atol=1e-5)
        np.testing.assert_allclose(both.found["end"][layer][:, :30], full[:, 38, :30], rtol=0, atol=1e-5)
        assert not both.found["null"][layer][:, 30:].any()


def test_states_of_each_depth_are_those_of_a_shorter_model(make_drafter: Callable[..., Drafter]) -> None:
    drafter = make_drafter()
    deep = Rows()
    drafter.read(IDS, Reading(hidden=(1, 2, 3), chunk=40), deep)
    assert sorted(deep.states) == [1, 2, 3]
    for depth in (1, 2):
        short = Rows()
        drafter.read(IDS, Reading(n_layers=depth, hidden=(depth,)), short)
        np.testing.assert_allclose(short.states[depth], deep.states[depth], rtol=0, atol=1e-5)
    assert np.abs(deep.states[1] - deep.states[3]).max() > 0.1


def test_stopping_in_the_last_layer_changes_no_row(make_drafter: Callable[..., Drafter]) -> None:
    """With the states asked for nothing stops; a part of the layers is read as the beginning of all."""
    groups = (Group("mean", QUERIES), Group("raw", tokens([50]), raw=True))
    whole, stopped, short = Rows(), Rows(), Rows()
    drafter = make_drafter()
    drafter.read(IDS, Reading(groups, hidden=(3,)), whole)
    drafter.read(IDS, Reading(groups), stopped)
    drafter.read(IDS, Reading(groups, n_layers=2), short)
    for name in ("mean", "raw"):
        np.testing.assert_allclose(np.stack(stopped.found[name]), np.stack(whole.found[name]), rtol=0, atol=1e-6)
        np.testing.assert_allclose(np.stack(short.found[name]), np.stack(whole.found[name][:2]), rtol=0, atol=1e-6)
    assert whole.states[3].shape == (96, 32)
    raw = whole.found["raw"][0]
    softened = np.exp(raw[:, :51]) / np.exp(raw[:, :51]).sum(1, keepdims=True)
    one = Rows()
    drafter.read(IDS, Reading((Group("soft", tokens([50])),)), one)
    np.testing.assert_allclose(one.found["soft"][0][:, :51], softened, rtol=0, atol=1e-5)
    assert not raw[:, 51:].any()


def test_one_token_can_be_scored(make_drafter: Callable[..., Drafter]) -> None:
    scores = score(make_drafter(), tokenized(IDS[:1]), SpecPrefill(n_lookahead=3))
    np.testing.assert_allclose(scores.values, [1 / 13], rtol=1e-6)


def test_load_is_timed(engine: Engine, make_drafter: Callable[..., Drafter], folder: Path) -> None:
    assert engine.load_seconds > 0
    assert make_drafter().load_seconds > 0
    assert engine.caps.keeps_positions


@pytest.mark.parametrize("name", ["early-exit", "selective-icr", "gemfilter", "claa", "specpc"])
def test_a_share_of_the_layers_is_one_of_the_whole_model(make_drafter: Callable[..., Drafter], name: str) -> None:
    """Only the layers that a scorer reads are loaded, as the pipeline does it; the share isn't taken twice."""
    scorer = make(name, None)
    whole = make_drafter()
    depth = scorer.depth(whole.info.n_layers)
    cut = make_drafter(depth)
    assert (cut.info.n_layers, cut.info.whole_layers) == (depth, whole.info.n_layers)
    expected, found = (score(drafter, tokenized(IDS), scorer) for drafter in (whole, cut))
    assert found.n_layers == expected.n_layers == depth
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-5)
