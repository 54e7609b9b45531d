"""Values made comparable between tasks. Pure."""

from __future__ import annotations

import numpy as np

from agentctx.repo.ranking.text import Floats, Ints


def scaled(values: Floats) -> Floats:
    """To at most 1."""
    top = float(values.max()) if len(values) else 0.0
    return values / top if top > 0 else values


def ranks(values: Floats) -> Floats:
    """log2 of the place, best first; equal values share the last of their places, and so don't depend on the order."""
    ordered = np.sort(values)
    place = len(values) - np.searchsorted(ordered, values, side="left")
    return np.log2(np.maximum(place, 1))


def grouped_max(values: Floats, group: Ints, n: int) -> Floats:
    out = np.zeros(n)
    np.maximum.at(out, group, values)
    return out
