"""Several scorers on one run of the drafter: for comparing them on the same captured attention. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agentctx.prompt import Float32
from agentctx.spec.protocols import Drafter
from agentctx.spec.reading import Aside, Group, Reading, is_ahead
from agentctx.spec.scorers.base import Asked, Scorer, Scoring


@dataclass(frozen=True, slots=True)
class _Part:
    number: int
    reading: Reading
    scoring: Scoring


def read_jointly(drafter: Drafter, scorers: Sequence[Scorer], asked: Asked) -> Mapping[str, Float32]:
    """The values of every scorer, by its name, float32 (T,) each; exactly what each gives alone.

    Scorers share a run, but for those with look-ahead: they share it with those of the same depth.

    Raises:
        EngineUnavailable: the prompt exceeds the drafter's context.
    """
    parts = [_Part(n, *scorer.begin(asked)) for n, scorer in enumerate(scorers)]
    for members in _runs(parts, asked.n_layers):
        drafter.read(asked.prompt.ids, _merged(members, asked.n_layers), _Tee(members, asked.n_layers))
    return {scorer.name: part.scoring.values() for scorer, part in zip(scorers, parts, strict=True)}


def _runs(parts: Sequence[_Part], n_layers: int) -> list[list[_Part]]:
    """Parts with look-ahead by depth and steps; the others join one that is deep enough, if they want no states."""
    runs: dict[tuple[int, int], list[_Part]] = {}
    plain: list[_Part] = []
    for part in parts:
        if part.reading.stops:
            plain.append(part)
        else:
            runs.setdefault((part.reading.n_layers or n_layers, part.reading.n_lookahead), []).append(part)
    if plain:
        deepest = max(part.reading.n_layers or n_layers for part in plain)
        with_states = any(part.reading.hidden for part in plain)
        hosts = [key for key in sorted(runs) if key[0] >= deepest and not with_states]
        runs.setdefault(hosts[0] if hosts else (deepest, 0), []).extend(plain)
    return [runs[key] for key in sorted(runs)]


def _merged(parts: Sequence[_Part], n_layers: int) -> Reading:
    asides = [part.reading.aside for part in parts if part.reading.aside is not None]
    if any((one.at, one.ids.tolist()) != (asides[0].at, asides[0].ids.tolist()) for one in asides):
        raise ValueError("scorers with different null queries can't share a run")
    aside = None
    if asides:
        of = tuple(_own(part, part.reading.aside.groups) for part in parts if part.reading.aside is not None)
        aside = Aside(asides[0].at, asides[0].ids, tuple(group for groups in of for group in groups))
    return Reading(
        groups=tuple(group for part in parts for group in _own(part, part.reading.groups)),
        n_layers=max(part.reading.n_layers or n_layers for part in parts),
        aside=aside,
        n_lookahead=max(part.reading.n_lookahead for part in parts),
        hidden=tuple(sorted({depth for part in parts for depth in part.reading.hidden})),
    )


def _own(part: _Part, groups: Sequence[Group]) -> tuple[Group, ...]:
    return tuple(replace(group, name=f"{part.number}:{group.name}") for group in groups)


@dataclass(frozen=True, slots=True)
class _Tee:
    """Gives each part what it asked for."""

    parts: Sequence[_Part]
    n_layers: int

    def rows(self, group: str, layer: int, rows: Float32) -> None:
        for part in self.parts:
            if layer >= (part.reading.n_layers or self.n_layers):
                continue
            if is_ahead(group):
                if part.reading.n_lookahead:
                    part.scoring.rows(group, layer, rows)
            elif group.startswith(f"{part.number}:"):
                part.scoring.rows(group.partition(":")[2], layer, rows)

    def hidden(self, depth: int, states: Float32) -> None:
        for part in self.parts:
            if depth in part.reading.hidden:
                part.scoring.hidden(depth, states)
