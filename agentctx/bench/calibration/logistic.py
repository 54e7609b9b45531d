"""Logistic regression with a penalty, by Newton's method. Pure numpy, deterministic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agentctx.spec.scorers.base import Float64

ROUNDS = 12
LEAST = 1e-5  # of the largest step, at which it has converged


def balanced(gold: Float64) -> Float64:
    """Weights of one task's rows: half of the weight is on what was edited."""
    positive = gold > 0
    n, m = int(positive.sum()), int((~positive).sum())
    return np.where(positive, 0.5 / max(n, 1), 0.5 / max(m, 1))


def fit(x: np.ndarray, y: np.ndarray, weight: Float64, penalty: Float64) -> Float64:
    """(F,): the weights that minimise the weighted log loss + sum(penalty * w^2) / 2. There is no intercept: add a
    column of ones with the penalty 0 for one.

    x: (N, F); y: bool (N,); penalty: (F,).
    """
    w = np.zeros(x.shape[1])
    target = y.astype(np.float64)
    for _ in range(ROUNDS):
        p = 1 / (1 + np.exp(-np.clip(x @ w, -30, 30)))
        gradient = x.T @ (weight * (p - target)) + penalty * w
        curve = weight * np.maximum(p * (1 - p), 1e-6)
        hessian = (x * curve[:, None].astype(x.dtype)).T @ x
        hessian = hessian.astype(np.float64) + np.diag(penalty + 1e-9)
        step = np.linalg.solve(hessian, gradient)
        w = w - step
        if np.abs(step).max() < LEAST * max(1.0, np.abs(w).max()):
            break
    return w


def stack(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros((0, 0))
