"""A mean over cases with its bootstrap interval. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

ROUNDS = 2000


def interval(differences: Sequence[float]) -> tuple[float, float, float]:
    """The mean, and its 95 % interval by bootstrap over cases."""
    values = np.array(differences)
    rng = np.random.default_rng(0)
    means = values[rng.integers(0, len(values), (ROUNDS, len(values)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(values.mean()), float(low), float(high)


def shown(found: tuple[float, float, float]) -> str:
    mean, low, high = found
    return f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"
