"""Attention of a drafter -> one score per prompt token: SpecPrefill (arXiv 2502.02789). Pure numpy.

The queries are those of the last prompt token and of each greedy look-ahead token. For every query ("step"):
softmax over the prompt's keys in float32, average pooling along the prompt, max over layers and heads; then the
mean over the steps. `StepScores` does it as a stream: no more than one layer's rows are ever held.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

import numpy as np
import numpy.typing as npt

from agentctx.prompt import Float32, Int32

CHUNK = 32  # tokens that are kept or dropped together in the published algorithm


def attention_rows(q: Float32, k: Float32, scale: float, at: Int32, *, raw: bool = False) -> Float32:
    """Attention of B queries over S keys, float32 (H, B, S), each over the keys up to its own place.

    Args:
        q: float32 (H, B, D), after RoPE.
        k: float32 (KVH, S, D), after RoPE; query head h reads key head h // (H // KVH).
        scale: what the model multiplies the logits with (not always 1/sqrt(D)).
        at: int32 (B,), the places of the queries among the keys.
        raw: the scaled products instead of their softmax, 0 for the keys behind.
    """
    n_heads, n_queries, width = q.shape
    n_kv, n_keys, _ = k.shape
    if n_heads % n_kv:
        raise ValueError(f"{n_heads} query heads can't share {n_kv} key heads")
    grouped = q.astype(np.float32, copy=False).reshape(n_kv, -1, width)
    logits = np.matmul(grouped, k.astype(np.float32, copy=False).transpose(0, 2, 1)) * np.float32(scale)
    logits = logits.reshape(n_heads, n_queries, n_keys)
    behind = np.arange(n_keys)[None, None] > at[None, :, None]
    logits = np.where(behind, np.float32(0 if raw else -np.inf), logits)
    return logits if raw else softmax(logits)


def softmax(logits: Float32) -> Float32:
    """Softmax along the last axis."""
    weights: Float32 = np.exp(logits - logits.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def pool(rows: Float32, kernel: int) -> Float32:
    """avg_pool1d of (H, T) along T: stride 1, zero padded, the padding counted (so the edges are damped)."""
    if kernel < 1 or kernel % 2 == 0:
        raise ValueError(f"a pooling kernel must be odd and positive, not {kernel}")
    n_tokens = rows.shape[1]
    padded = np.pad(rows, ((0, 0), (kernel // 2, kernel // 2)))
    # Shifted sums, not a cumulative sum: in float32 the latter loses the small weights behind a large one.
    total = padded[:, :n_tokens].copy()
    for shift in range(1, kernel):
        total += padded[:, shift : shift + n_tokens]
    total /= np.float32(kernel)
    return total


class StepScores:
    """Collects rows layer by layer, step by step: max over layers and heads, then mean over the steps."""

    def __init__(self, n_tokens: int, kernel: int) -> None:
        self._kernel = kernel
        self._peak: Float32 = np.zeros(n_tokens, np.float32)
        self._sum: npt.NDArray[np.float64] = np.zeros(n_tokens, np.float64)
        self._pending = False
        self.n_steps = 0

    def add(self, rows: Float32) -> None:
        """Rows (H, T) of one layer in the current step."""
        np.maximum(self._peak, pool(rows, self._kernel).max(axis=0), out=self._peak)
        self._pending = True

    def end_step(self) -> None:
        if not self._pending:
            raise ValueError("a step without attention rows: the drafter's layers were not captured")
        self._sum += self._peak
        self._peak[:] = 0
        self._pending = False
        self.n_steps += 1

    def mean(self) -> Float32:
        """float32 (T,): the scores of all steps that ended."""
        if not self.n_steps:
            raise ValueError("no step has ended")
        return (self._sum / self.n_steps).astype(np.float32)


def look_ahead(last: int, step: Callable[[int, int], int], eos: Collection[int], n_queries: int) -> list[int]:
    """The greedy look-ahead tokens; one query ("step") per entry, nothing after an EOS is asked.

    Args:
        last: the prompt's last token, the first query.
        step: (token, i) -> the next token; token sits i positions behind the last prompt token.
    """
    generated: list[int] = []
    token = last
    for i in range(n_queries):
        token = step(token, i)
        generated.append(token)
        if token in eos:
            break
    return generated


def chunk_means(scores: Float32, size: int = CHUNK) -> Float32:
    """float32 (ceil(T / size),): mean of every chunk; the last one may be short."""
    edges = np.arange(0, len(scores), size)
    sums = np.add.reduceat(scores.astype(np.float64), edges)
    lengths = np.diff(np.append(edges, len(scores)))
    return (sums / lengths).astype(np.float32)


def select_chunks(scores: Float32, keep: float, size: int = CHUNK) -> Int32:
    """The published selection: sorted token indices of the ceil(n_chunks * keep) best chunks (ties: the earlier).

    It keeps nothing by force and cuts code anywhere: it is here to compare with, `spec.select` is what runs.
    """
    if not 0 < keep <= 1:
        raise ValueError(f"keep is a fraction in (0, 1], not {keep}")
    means = chunk_means(scores, size)
    # Rounded first: 10 * 0.3 is 3.0000000000000004 in binary and must not keep a fourth chunk.
    n_keep = math.ceil(round(len(means) * keep, 9))
    best = np.sort(np.argsort(-means, kind="stable")[:n_keep])
    tokens = (best[:, None] * size + np.arange(size)[None]).ravel()
    return tokens[tokens < len(scores)].astype(np.int32)
