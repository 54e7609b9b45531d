"""The contract on a real model: SmolLM2-135M from the user's cache."""

from __future__ import annotations

import inspect
import textwrap
from typing import Any

import numpy as np
import pytest
from engine_models import Oracle, oracle_of, score, sparse, tokenized

from agentctx.models import info as model_info
from agentctx.models.counting import tokenizer_of
from agentctx.models.folder import ModelFolder
from agentctx.spec import engines
from agentctx.spec.protocols import ChatFrame, SampleParams
from agentctx.spec.scorers.base import Shallow
from agentctx.spec.scorers.published import SpecPrefill

pytest.importorskip("torch")
pytestmark = pytest.mark.model
N = 256


@pytest.fixture(scope="module")
def loaded(model_folder: ModelFolder) -> tuple[Any, Oracle, np.ndarray]:
    folder = model_folder
    tokenizer = tokenizer_of(folder)
    engine = engines.load("torch").load_engine(
        folder.path, "smollm2", tokenizer=tokenizer, chat=ChatFrame(), info=model_info.info(folder)
    )
    code = inspect.getsource(textwrap)[:3000]
    text = f"<|im_start|>user\n{code}\nWhat does fill() return?<|im_end|>\n<|im_start|>assistant\n"
    ids = np.asarray(tokenizer.encode(text, special=True)[0], np.int32)
    return engine, oracle_of(folder.path), np.concatenate([ids[: N - 40], ids[-40:]])


KEPT = np.asarray([*range(20), *range(64, 90), *range(150, 170), *range(N - 50, N)])


def test_sparse_equals_the_masked_dense_model(loaded: tuple[Any, Oracle, np.ndarray]) -> None:
    engine, oracle, ids = loaded
    session = engine.prefill(sparse(ids, KEPT), chunk=64)
    more = session.sample(1, SampleParams(max_new=4))[0].ids
    whole, kept = np.concatenate([ids, more]), np.concatenate([KEPT, np.arange(N, N + len(more))])
    expected = oracle.logits(whole, kept)
    np.testing.assert_allclose(session.logits, expected[N - 1], rtol=0, atol=1e-3)
    np.testing.assert_allclose(session.extend(list(more)), expected[N:], rtol=0, atol=1e-3)
    assert [int(row.argmax()) for row in expected[N - 1 : -1]] == list(more)


def test_wrong_positions_are_seen(loaded: tuple[Any, Oracle, np.ndarray]) -> None:
    engine, _, ids = loaded
    right = engine.prefill(sparse(ids, KEPT)).logits
    compact = engine.prefill(sparse(ids[KEPT], np.arange(len(KEPT)))).logits
    assert np.abs(compact - right).max() > 0.1


def test_scores_equal_full_attention(loaded: tuple[Any, Oracle, np.ndarray]) -> None:
    engine, oracle, ids = loaded
    options = Shallow(SpecPrefill(n_lookahead=1, kernel=1), 10)
    drafter = engines.load_drafting("torch").drafter_from(engine)
    expected = np.max([layer[:, -1].max(0) for layer in oracle.attentions(ids)[:10]], axis=0)
    np.testing.assert_allclose(score(drafter, tokenized(ids), options).values, expected, rtol=0, atol=1e-4)


def test_it_still_writes_text(loaded: tuple[Any, Oracle, np.ndarray]) -> None:
    engine, _, ids = loaded
    session = engine.prefill(sparse(ids, np.arange(N)))
    greedy = session.sample(2, SampleParams(max_new=8))
    assert greedy[0].ids == greedy[1].ids
    assert greedy[0].text.isprintable() or "\n" in greedy[0].text
    hot = session.sample(2, SampleParams(max_new=8, temperature=1.2, top_p=0.95))
    assert len({completion.ids for completion in hot}) == 2
