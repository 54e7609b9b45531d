from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from agentctx.spec.score import StepScores, attention_rows, chunk_means, look_ahead, pool, select_chunks, softmax

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def test_the_whole_chain_equals_torch() -> None:
    """The published code's own operations, on random queries and keys: 3 layers, 8 steps, GQA 6:2."""
    torch = pytest.importorskip("torch")
    queries, keys = normal(8, 3, 6, 16), normal(3, 2, 100, 16)
    scale = 0.3
    scores = StepScores(100, 13)
    for step in queries:
        for q, k in zip(step, keys, strict=True):
            scores.add(attention_rows(q[:, None], k, scale, np.asarray([99]))[:, 0])
        scores.end_step()
    repeated = torch.tensor(keys).repeat_interleave(3, dim=1)
    logits = torch.einsum("slhd,lhtd->slht", torch.tensor(queries), repeated) * scale
    weights = torch.softmax(logits, dim=-1, dtype=torch.float32)
    pooled = torch.nn.functional.avg_pool1d(weights.reshape(8, 18, 100), 13, stride=1, padding=6)
    expected = pooled.amax(1).mean(0).numpy()
    np.testing.assert_allclose(scores.mean(), expected, rtol=1e-5, atol=1e-8)
    assert scores.mean().dtype == np.float32
    chunks = torch.stack([c.mean() for c in torch.split(torch.tensor(scores.mean()), 32)])
    np.testing.assert_allclose(chunk_means(scores.mean()), chunks.numpy(), rtol=1e-5)
    best = torch.topk(chunks, math.ceil(len(chunks) * 0.5)).indices.sort().values.tolist()
    assert select_chunks(scores.mean(), 0.5).tolist() == [t for c in best for t in range(c * 32, min(100, c * 32 + 32))]


def test_attention_reads_the_right_key_heads() -> None:
    q = np.asarray([[1, 0], [0, 1], [1, 0], [0, 1]], np.float32)
    k = np.asarray([[[9, 0], [0, 9]], [[0, 9], [9, 0]]], np.float32)
    rows = attention_rows(q[:, None], k, 1.0, np.asarray([1]))
    assert rows[:, 0].argmax(1).tolist() == [0, 1, 1, 0]
    with pytest.raises(ValueError, match="3 query heads can't share 2"):
        attention_rows(q[:3, None], k, 1.0, np.asarray([1]))


def test_queries_see_no_key_behind_them() -> None:
    q, k = normal(2, 2, 4), normal(1, 3, 4)
    rows = attention_rows(q, k, 1.0, np.asarray([0, 1]))
    np.testing.assert_allclose(rows[:, 0], [[1, 0, 0]] * 2)
    assert (rows[:, 1, 2] == 0).all()
    raw = attention_rows(q, k, 0.5, np.asarray([0, 1]), raw=True)
    np.testing.assert_allclose(raw[1, 1], [q[1, 1] @ k[0, 0] / 2, q[1, 1] @ k[0, 1] / 2, 0], rtol=1e-5)


def test_softmax_survives_large_logits() -> None:
    np.testing.assert_allclose(softmax(np.asarray([[1e4, 1e4, -1e4]], np.float32)), [[0.5, 0.5, 0]])


@pytest.mark.parametrize(
    ("row", "kernel", "expected"),
    [
        ([3.0, 0, 0, 0], 3, [1, 1, 0, 0]),
        ([3.0, 3, 3, 3], 3, [2, 3, 3, 2]),  # the padding counts: edges are damped
        ([1.0, 2, 3], 1, [1, 2, 3]),
        ([5.0], 5, [1]),
    ],
)
def test_pool(row: list[float], kernel: int, expected: list[float]) -> None:
    np.testing.assert_allclose(pool(np.asarray([row], np.float32), kernel), [expected], rtol=1e-6)


def test_pool_keeps_small_weights_behind_a_large_one() -> None:
    rows = np.full((1, 5000), 1e-9, np.float32)
    rows[0, 0] = 1
    np.testing.assert_allclose(pool(rows, 13)[0, 20:4990], 1e-9, rtol=1e-5)


@pytest.mark.parametrize("kernel", [0, 2, -1])
def test_pool_refuses_even_kernels(kernel: int) -> None:
    with pytest.raises(ValueError, match="odd"):
        pool(np.ones((1, 4), np.float32), kernel)


def test_pooling_comes_before_the_maximum_over_heads() -> None:
    rows = np.zeros((2, 9), np.float32)
    rows[0, 3] = rows[1, 5] = 1
    scores = StepScores(9, 3)
    scores.add(rows)
    scores.end_step()
    np.testing.assert_allclose(scores.mean() * 3, [0, 0, 1, 1, 1, 1, 1, 0, 0], rtol=1e-6)


def test_max_over_layers_then_mean_over_steps() -> None:
    scores = StepScores(2, 1)
    for layers in ([[0.2, 0.8], [0.6, 0.4]], [[0.0, 1.0], [0.1, 0.9]]):
        for row in layers:
            scores.add(np.asarray([row], np.float32))
        scores.end_step()
    np.testing.assert_allclose(scores.mean(), [(0.6 + 0.1) / 2, (0.8 + 1.0) / 2])
    assert scores.n_steps == 2


def test_an_uncaptured_step_is_an_error() -> None:
    with pytest.raises(ValueError, match="not captured"):
        StepScores(4, 13).end_step()
    with pytest.raises(ValueError, match="no step"):
        StepScores(4, 13).mean()


@pytest.mark.parametrize(
    ("answers", "n", "expected"),
    [
        ([10, 11, 12], 3, [(1, 0), (10, 1), (11, 2)]),
        ([99, 11, 12], 3, [(1, 0)]),
        ([10, 99, 12], 3, [(1, 0), (10, 1)]),
        ([10, 11, 99], 3, [(1, 0), (10, 1), (11, 2)]),
        ([10], 1, [(1, 0)]),
    ],
)
def test_look_ahead_asks_nothing_after_eos(answers: list[int], n: int, expected: list[tuple[int, int]]) -> None:
    asked = []

    def step(token: int, i: int) -> int:
        asked.append((token, i))
        return answers[i]

    assert look_ahead(1, step, {99}, n) == answers[: len(expected)]
    assert asked == expected


@pytest.mark.parametrize(
    ("n", "keep", "n_chunks"), [(320, 0.3, 3), (320, 0.31, 4), (10, 0.01, 1), (33, 1.0, 2), (64, 0.5, 1)]
)
def test_select_keeps_the_ceiling(n: int, keep: float, n_chunks: int) -> None:
    kept = select_chunks(np.arange(n, dtype=np.float32), keep)
    assert len({int(t) // 32 for t in kept}) == n_chunks
    assert kept[-1] == n - 1


@pytest.mark.parametrize("keep", [0, -1, 1.5])
def test_select_refuses_bad_fractions(keep: float) -> None:
    with pytest.raises(ValueError, match="fraction"):
        select_chunks(np.ones(64, np.float32), keep)


@given(
    hnp.arrays(np.float32, st.integers(1, 200), elements=st.floats(0, 1, width=32)),
    st.floats(0.01, 1),
    st.integers(1, 40),
)
def test_selection_is_sorted_whole_chunks_and_no_dropped_chunk_is_better(
    scores: np.ndarray, keep: float, size: int
) -> None:
    kept = select_chunks(scores, keep, size)
    assert (np.diff(kept) > 0).all()
    chunks = sorted({int(t) // size for t in kept})
    assert len(kept) == sum(min(size, len(scores) - c * size) for c in chunks)
    means = chunk_means(scores, size)
    dropped = [means[c] for c in range(len(means)) if c not in chunks]
    assert not dropped or max(dropped) <= min(means[c] for c in chunks)
