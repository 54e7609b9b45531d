"""The failing tests, their fixtures and what they use of test files -> blocks of the prompt. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from agentctx.assemble import Block
from agentctx.prompt import Section, Tokenizer
from agentctx.repo.choose import Chooser, UnitKey, units_of
from agentctx.repo.packfiles import PackInput, counter, file_blocks
from agentctx.source import Link, Resolution, SymbolKind

Links = Mapping[UnitKey, list[Link]]


def test_blocks(given: PackInput, tokenizer: Tokenizer, room: int, links: Links) -> tuple[list[Block], tuple[str, ...]]:
    """The failing tests with their fixtures; those that don't fit are shown by their header."""
    chooser = Chooser(given.graph, links, counter(given, tokenizer), room)
    symbols = (*given.located.failing_tests, *given.located.fixtures)
    in_part = sum(not _add_test(chooser, given, symbol, first=symbol == symbols[0]) for symbol in symbols)
    in_part += sum(not chooser.add_bare(key) for key in given.located.test_units)
    _add_helpers(chooser, given, links)
    for key in given.located.pinned:
        if key[0] in chooser.chosen.units:
            chooser.add_bare(key)
    notes: tuple[str, ...] = ()
    if in_part:
        n_all = len(symbols) + len(given.located.test_units)
        what = f"{in_part} of {n_all} failing tests and fixtures are packed in part or not at all"
        notes = (f"{what}: they need more than the {room} tokens of the window that are for tests",)
    units = {path: frozenset(chosen) for path, chosen in sorted(chooser.chosen.units.items())}
    blocks = file_blocks(given, units, Section.TESTS, {})
    return blocks, notes


def _add_test(chooser: Chooser, given: PackInput, symbol: str, *, first: bool) -> bool:
    """A test, as much of it as fits. Says whether it is whole."""
    keys = units_of(given.graph, symbol)
    if chooser.add(keys):
        return True
    header = [(given.graph.symbols[symbol].path, given.graph.symbols[symbol].header)]
    cost = chooser.cost(chooser.closed(header, bare=True))
    if first and cost <= 2 * chooser.chosen.room:  # one is named, unless its parameters alone would put out the code
        chooser.chosen.room = max(chooser.chosen.room, cost)
    for key in (*header, *keys):
        chooser.add_bare(key)
    return False


def _add_helpers(chooser: Chooser, given: PackInput, links: Links) -> None:
    """What the tests use of test files (helpers, constants, base classes): whole while there is room, else headers."""
    seen: set[str] = set()
    todo = [(path, unit) for path, units in sorted(chooser.chosen.units.items()) for unit in sorted(units)]
    while todo:
        found = [target for key in todo for link in links.get(key, ()) for target in _certain(link)]
        todo = []
        for symbol in dict.fromkeys(found):
            known = given.graph.symbols[symbol]
            if symbol in seen or known.kind is SymbolKind.MODULE or not given.graph.files[known.path].is_test:
                continue
            seen.add(symbol)
            keys = units_of(given.graph, symbol) if known.kind is not SymbolKind.CLASS else []
            if not (keys and chooser.add(keys)):
                keys = [(known.path, known.header)]
                chooser.add(keys)
            todo.extend(key for key in keys if chooser.chosen.has(key))


def _certain(link: Link) -> tuple[str, ...]:
    return link.targets if link.state is Resolution.RESOLVED else ()
