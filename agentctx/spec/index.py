"""Look-ups in a PromptDocument that pins, repair and the omission check share. Pure; built once per document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from agentctx.prompt import Definition, PromptDocument, PromptLink, Section
from agentctx.source import MARKS, Resolution, Role, SymbolKind, UnitKind
from agentctx.spec.configs import named_configs

EVIDENCE_SECTIONS = frozenset({Section.LOG, Section.TESTS})
SUPPORT_KINDS = frozenset({UnitKind.FILE, UnitKind.ELISION, UnitKind.BLOCK, UnitKind.DOC_END})


@dataclass(frozen=True, eq=False)
class PromptIndex:
    """A document and what follows from it. The cached fields are filled on first use and never change."""

    document: PromptDocument

    @cached_property
    def links(self) -> tuple[tuple[PromptLink, ...], ...]:
        """The links of each unit."""
        by_unit: list[list[PromptLink]] = [[] for _ in self.document.units]
        for link in self.document.links:
            by_unit[link.unit].append(link)
        return tuple(tuple(links) for links in by_unit)

    @cached_property
    def incoming(self) -> dict[str, tuple[PromptLink, ...]]:
        """The resolved links to each symbol."""
        found: dict[str, list[PromptLink]] = {}
        for link in self.document.links:
            if link.state is Resolution.RESOLVED:
                for target in link.targets:
                    found.setdefault(target, []).append(link)
        return {symbol: tuple(links) for symbol, links in found.items()}

    @cached_property
    def members(self) -> dict[str, tuple[str, ...]]:
        """The definitions directly inside each definition, sorted."""
        found: dict[str, list[str]] = {}
        for symbol in sorted(self.document.definitions):
            parent = self.document.definitions[symbol].parent
            if parent is not None:
                found.setdefault(parent, []).append(symbol)
        return {parent: tuple(symbols) for parent, symbols in found.items()}

    @cached_property
    def headers(self) -> dict[int, tuple[str, ...]]:
        """The definitions that each unit is the header of, sorted."""
        found: dict[int, list[str]] = {}
        for symbol in sorted(self.document.definitions):
            header = self.document.definitions[symbol].header
            if header is not None:
                found.setdefault(header, []).append(symbol)
        return {unit: tuple(symbols) for unit, symbols in found.items()}

    @cached_property
    def lines(self) -> dict[int, tuple[int, ...]]:
        """By header: the units that may stand for the definitions that it is the header of."""
        found: dict[int, tuple[int, ...]] = {}
        for unit, symbols in self.headers.items():
            lines = tuple(line for one in symbols if (line := self.document.definitions[one].line) is not None)
            if lines:
                found[unit] = lines
        return found

    @cached_property
    def configs(self) -> Mapping[int, tuple[int, ...]]:
        """By unit of the request or the log: units of configuration that it names."""
        return named_configs(self.document)

    @cached_property
    def is_support(self) -> tuple[bool, ...]:
        """Whether a unit is never kept for its own sake.

        It is of use to the units that have it in their spine (a file's line, `if x:`), or stands for a definition that
        other units use.
        """
        needed = {other for unit in self.document.units for other in unit.spine}
        return tuple(
            unit.kind in MARKS
            or unit.section is Section.SIGNATURES
            or (unit.kind in SUPPORT_KINDS and unit.index in needed)
            for unit in self.document.units
        )

    @cached_property
    def is_evidence(self) -> tuple[bool, ...]:
        """Whether a unit counts against the share of log and tests."""
        return tuple(unit.section in EVIDENCE_SECTIONS for unit in self.document.units)

    def definition(self, symbol: str) -> Definition | None:
        return self.document.definitions.get(symbol)

    def closure(self, units: Iterable[int]) -> tuple[int, ...]:
        """The units and their spines, sorted."""
        found: set[int] = set()
        for unit in units:
            found.add(unit)
            found.update(self.document.units[unit].spine)
        return tuple(sorted(found))

    def signature(self, symbol: str) -> tuple[int, ...]:
        """The header of a definition with its spine; () when it isn't packed."""
        definition = self.definition(symbol)
        return self.closure((definition.header,)) if definition and definition.header is not None else ()

    def nested(self, symbols: Iterable[str]) -> tuple[str, ...]:
        """The symbols and every definition inside them, sorted."""
        found: set[str] = set()
        todo = list(symbols)
        while todo:
            symbol = todo.pop()
            if symbol not in found:
                found.add(symbol)
                todo.extend(self.members.get(symbol, ()))
        return tuple(sorted(found))

    def bases(self, symbol: str) -> tuple[str, ...]:
        """The resolved bases of a class, as its header names them, sorted."""
        definition = self.definition(symbol)
        if definition is None or definition.kind is not SymbolKind.CLASS or definition.header is None:
            return ()
        links = (link for link in self.links[definition.header] if link.role is Role.BASE)
        found = {target for link in links if link.state is Resolution.RESOLVED for target in link.targets}
        return tuple(sorted(found - {symbol}))
