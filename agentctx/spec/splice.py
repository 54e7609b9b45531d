"""Units put into a prompt, with every number that names a unit behind them moved. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from agentctx.assemble import Assembled
from agentctx.prompt import Definition, PackFacts, PromptDocument, PromptLink, PromptUnit
from agentctx.spans import ByteSpan

Move = Callable[[int], int]


def spliced(document: PromptDocument, made: Assembled, at: int) -> PromptDocument:
    """`document` with the units of `made` before its unit `at`."""
    n_units, n_bytes = len(made.units), len(made.text)
    byte = document.units[at].span.start if at < len(document.units) else len(document.text)

    def move(unit: int) -> int:
        return unit + n_units if unit >= at else unit

    def inside(unit: int) -> int:
        return unit + at

    units = (
        *(_moved(unit, move, 0) for unit in document.units[:at]),
        *(_moved(unit, inside, byte) for unit in made.units),
        *(_moved(unit, move, n_bytes) for unit in document.units[at:]),
    )
    return replace(
        document,
        text=document.text[:byte] + made.text + document.text[byte:],
        units=units,
        definitions={symbol: _definition(one, move) for symbol, one in document.definitions.items()},
        links=tuple(_link(link, move) for link in document.links),
        facts=_facts(document.facts, move),
    )


def _moved(unit: PromptUnit, move: Move, n_bytes: int) -> PromptUnit:
    index, spine = move(unit.index), _all(unit.spine, move)
    if index == unit.index and not n_bytes and spine == unit.spine:
        return unit
    span = ByteSpan(unit.span.start + n_bytes, unit.span.end + n_bytes)
    return replace(unit, index=index, span=span, spine=spine)


def _definition(one: Definition, move: Move) -> Definition:
    if one.header is None and not one.units:
        return one
    return replace(one, header=None if one.header is None else move(one.header), units=_all(one.units, move))


def _link(link: PromptLink, move: Move) -> PromptLink:
    via = None if link.via is None else move(link.via)
    needs = tuple(replace(need, units=_all(need.units, move)) for need in link.needs)
    unit = move(link.unit)
    if (unit, via, needs) == (link.unit, link.via, link.needs):
        return link
    return replace(link, unit=unit, via=via, needs=needs)


def _facts(facts: PackFacts, move: Move) -> PackFacts:
    return replace(
        facts,
        frame_units=_all(facts.frame_units, move),
        test_units=_all(facts.test_units, move),
        user_pins=_all(facts.user_pins, move),
        error_units=_all(facts.error_units, move),
    )


def _all(units: Iterable[int], move: Move) -> tuple[int, ...]:
    return tuple(move(unit) for unit in units)
