"""Second-order features: what the first scores of other chunks say about a chunk. Pure.

Fixes stay together: in one file, one class, along calls, among chunks that speak of the same things.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agentctx.repo.ranking.chunks import Chunk
from agentctx.repo.ranking.features import DIGITS, Table
from agentctx.repo.ranking.nodes import CALL, MEMBER, NAMED, OVERRIDE, TYPE, USE
from agentctx.repo.ranking.scales import grouped_max, ranks
from agentctx.repo.ranking.text import Floats, Ints, counted
from agentctx.repo.terms import parts

MAX_TERMS = 40  # of a chunk: its rarest words
MIN_LENGTH = 3
_VARIANTS = frozenset({"async", "sync", "do", "inner", "impl"})
_LINKING = (CALL, USE, TYPE, NAMED, MEMBER, OVERRIDE)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """How the candidates of a task hang together. All by position among the candidates.

    `name`: number of the name, the same for what differs only by being asynchronous or a variant. `term_of`, `term`,
    `term_weight`: words of each candidate with weights, the vector of each of length 1.
    """

    file: Ints
    group: Ints
    name: Ints
    order: Ints  # position in the repository: neighbours differ by one
    source: Ints
    target: Ints
    weight: Floats
    term_of: Ints
    term: Ints
    term_weight: Floats

    @property
    def n(self) -> int:
        return len(self.file)


def surroundings(made: Table, chosen: Ints) -> Surroundings:
    """Of the candidates `made.rows[chosen]`."""
    nodes, at = made.nodes, made.rows[chosen]
    place = np.full(nodes.n, -1, dtype=np.int64)
    place[at] = np.arange(len(at))
    edges = nodes.edges(_LINKING) & (place[nodes.source] >= 0) & (place[nodes.target] >= 0)
    source, target, weight = place[nodes.source[edges]], place[nodes.target[edges]], nodes.weight[edges]
    keys, where = np.unique(source * max(len(at), 1) + target, return_inverse=True)
    heaviest = grouped_max(weight, where, len(keys))
    source, target = np.divmod(keys, max(len(at), 1))
    group = nodes.group[at]
    term_of, term, term_weight = _vectors([nodes.chunks[node].text for node in at.tolist()])
    return Surroundings(
        file=np.unique(nodes.file[at], return_inverse=True)[1],
        group=np.unique(np.where(group < 0, -1 - np.arange(len(at)), group), return_inverse=True)[1],
        name=_names([nodes.chunks[node] for node in at.tolist()]),
        order=at,
        source=source,
        target=target,
        weight=heaviest,
        term_of=term_of,
        term=term,
        term_weight=term_weight,
    )


def _names(chunks: Sequence[Chunk]) -> Ints:
    """`send`, `send_async`, `_send` and the overloads of each are one; what has no name has a number of its own."""
    names = []
    for number, chunk in enumerate(chunks):
        last = (chunk.symbol or "").rpartition("::")[2].rpartition(".")[2].partition("~")[0]
        words = [word for word in parts(last)[1:] or parts(last) if word not in _VARIANTS]
        names.append("".join(words) or f"@{number}")
    return np.unique(np.array(names), return_inverse=True)[1] if names else np.zeros(0, dtype=np.int64)


def _vectors(texts: Sequence[str]) -> tuple[Ints, Ints, Floats]:
    """The rarest words of each text that another one has too, weighted by rarity."""
    held = [sorted({word for word in counted(text)[0] if len(word) >= MIN_LENGTH}) for text in texts]
    counts: dict[str, int] = {}
    for words in held:
        for word in words:
            counts[word] = counts.get(word, 0) + 1
    number = {word: n for n, word in enumerate(sorted(word for word, count in counts.items() if count > 1))}
    rows, cols, weights = [], [], []
    for row, words in enumerate(held):
        known = sorted((word for word in words if word in number), key=lambda word: (counts[word], word))[:MAX_TERMS]
        values = [float(np.log(len(texts) / counts[word])) for word in known]
        norm = sum(value * value for value in values) ** 0.5 or 1.0
        rows += [row] * len(known)
        cols += [number[word] for word in known]
        weights += [value / norm for value in values]
    return np.array(rows, dtype=np.int64), np.array(cols, dtype=np.int64), np.array(weights, dtype=np.float64)


SECOND = (
    "first.logit", "first.rank", "first.best", "first.sum",
    "near.file.max", "near.file.sum", "near.file.share", "near.file.rank", "near.class.sum", "near.class.max",
    "near.name", "near.calls", "near.calls.max", "near.called", "near.called.max", "near.alike",
    "near.before", "near.after",
)  # fmt: skip


def second_order(around: Surroundings, first: Floats) -> Floats:
    """(n, len(SECOND)). `first`: the probability that the first model gives each candidate."""
    n = around.n
    if not n:
        return np.zeros((0, len(SECOND)))
    p = np.clip(first, 1e-6, 1 - 1e-6)
    files, groups = int(around.file.max()) + 1, int(around.group.max()) + 1
    file_sum = np.bincount(around.file, weights=p, minlength=files)
    group_sum = np.bincount(around.group, weights=p, minlength=groups)
    calls = np.bincount(around.source, weights=around.weight * p[around.target], minlength=n)
    called = np.bincount(around.target, weights=around.weight * p[around.source], minlength=n)
    before, after = _neighbours(around, p)
    columns = (
        np.log(p / (1 - p)),
        ranks(p),
        np.full(n, p.max()),
        np.full(n, np.log1p(p.sum())),
        _max_of_others(p, around.file, files),
        file_sum[around.file] - p,
        file_sum[around.file] / max(float(p.sum()), 1e-9),
        ranks(file_sum)[around.file],
        group_sum[around.group] - p,
        _max_of_others(p, around.group, groups),
        _max_of_others(p, around.name, n),
        calls,
        grouped_max(p[around.target], around.source, n),
        called,
        grouped_max(p[around.source], around.target, n),
        _alike(around, p),
        before,
        after,
    )
    return np.round(np.stack(columns, axis=1), DIGITS)


def _max_of_others(p: Floats, group: Ints, n: int) -> Floats:
    """The highest value in the group but for the own one."""
    best = grouped_max(p, group, n)
    is_best = p == best[group]
    alone = np.bincount(group, weights=is_best.astype(np.float64), minlength=n) == 1
    rest = grouped_max(np.where(is_best, 0.0, p), group, n)
    return np.where(is_best & alone[group], rest[group], best[group])


def _neighbours(around: Surroundings, p: Floats) -> tuple[Floats, Floats]:
    """Values of the chunks right before and after in the same file, 0 where these are no candidates."""
    before, after = np.zeros(len(p)), np.zeros(len(p))
    order = np.argsort(around.order, kind="stable")
    for one, other in zip(order[:-1].tolist(), order[1:].tolist(), strict=True):
        if around.file[one] == around.file[other] and around.order[other] - around.order[one] == 1:
            before[other], after[one] = p[one], p[other]
    return before, after


def _alike(around: Surroundings, p: Floats) -> Floats:
    """How much a chunk speaks of what the best chunks speak of, itself left out."""
    n_terms = int(around.term.max()) + 1 if len(around.term) else 0
    spoken = np.bincount(around.term, weights=around.term_weight * p[around.term_of], minlength=n_terms)
    total = np.bincount(around.term_of, weights=around.term_weight * spoken[around.term], minlength=len(p))
    own = np.bincount(around.term_of, weights=around.term_weight**2, minlength=len(p)) * p
    return total - own
