"""How near each chunk is to the failing tests: hops, and mass that is handed on along edges. Pure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agentctx.repo.ranking.nodes import Nodes
from agentctx.repo.ranking.text import Floats

FAR = 6.0
DECAY = 0.5

Mask = npt.NDArray[np.bool_]


def hops(nodes: Nodes, seeds: Floats, edges: Mask, most: int = 4, first: Mask | None = None) -> Floats:
    """(n,): references from a seed to each node, FAR beyond `most`. `first`: edges that may be the first step."""
    found = np.full(nodes.n, FAR)
    found[seeds > 0] = 0.0
    frontier = seeds > 0
    source, target = nodes.source[edges], nodes.target[edges]
    for step in range(1, most + 1):
        if step == 1 and first is not None:
            ends = nodes.target[first & frontier[nodes.source]]
        else:
            ends = target[frontier[source]]
        frontier = np.zeros(nodes.n, dtype=np.bool_)
        frontier[ends] = True
        frontier &= found == FAR
        found[frontier] = step
    return found


def mass(nodes: Nodes, seeds: Floats, edges: Mask, most: int = 4, first: Mask | None = None) -> Floats:
    """(n,): what arrives at each node: a seed hands on half of its mass, shared by the root of what it refers to."""
    source, target, share = _shares(nodes, edges)
    total = np.zeros(nodes.n)
    at = seeds
    for step in range(most):
        if step == 0 and first is not None:
            near_source, near_target, near_share = _shares(nodes, first)
            at = np.bincount(near_target, weights=near_share * at[near_source], minlength=nodes.n)
        else:
            at = np.bincount(target, weights=share * at[source], minlength=nodes.n)
        total = total + at
    return total


def _shares(nodes: Nodes, edges: Mask) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Floats]:
    """Distinct (source, target) with what the source hands on to the target."""
    keys = nodes.source[edges] * nodes.n + nodes.target[edges]
    distinct, where = np.unique(keys, return_inverse=True)
    weight = np.zeros(len(distinct))
    np.maximum.at(weight, where, nodes.weight[edges])
    source, target = np.divmod(distinct, max(nodes.n, 1))
    norm = np.sqrt(np.bincount(source, weights=weight, minlength=nodes.n))
    return source, target, DECAY * weight / np.where(norm > 0, norm, 1.0)[source]


def backward(nodes: Nodes, values: Floats, edges: Mask) -> Floats:
    """(n,): what callers get from what they refer to, shared by the root of how many refer to it."""
    source, target = nodes.source[edges], nodes.target[edges]
    distinct = np.unique(source * nodes.n + target)
    source, target = np.divmod(distinct, max(nodes.n, 1))
    fan_in = np.bincount(target, minlength=nodes.n)
    share = values[target] / np.sqrt(np.maximum(fan_in[target], 1))
    return np.bincount(source, weights=share, minlength=nodes.n)
