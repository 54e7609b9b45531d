"""Definitions and links of the packed units, in prompt coordinates. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agentctx.assemble import Assembled, Key
from agentctx.prompt import AbsentStatement, Definition, Evidence, Need, NeedKind, PromptLink, PromptUnit, Task
from agentctx.source import Link, RepoGraph, Resolution, Role, Symbol, SymbolKind, UnitKind

_IDENTIFIER = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_TELLING = re.compile(r"_|[a-z][A-Z]|\.|^[A-Z][a-z]+")
_MAX_CANDIDATES = 4


def definitions_and_links(
    graph: RepoGraph, data: Mapping[str, bytes], evidence: Evidence, task: Task, made: Assembled
) -> tuple[dict[str, Definition], tuple[PromptLink, ...]]:
    """Every definition that is packed or referred to, by id; and the links from packed units, in unit order."""
    statements = _Statements(graph, data, made.index)
    links = [
        *_code_links(graph, statements),
        *_variables(graph, statements),
        *_mentions(graph, evidence, task, made),
    ]
    links.sort(key=lambda link: (link.unit, link.line or 0, link.name, link.role, link.targets))
    inside = _units_by_symbol(graph, made.units)
    packed = {symbol for symbol in inside if graph.symbols[symbol].kind is not SymbolKind.MODULE}
    wanted = {target for link in links for target in link.targets} | packed
    for symbol in sorted(wanted):
        wanted.update(graph.overrides.get(symbol, ()))
        wanted.update(graph.overridden_by.get(symbol, ()))
    definitions = {s: _definition(graph, graph.symbols[s], made.index, inside.get(s, ())) for s in sorted(wanted)}
    return definitions, tuple(links)


def _definition(graph: RepoGraph, symbol: Symbol, index: Mapping[Key, int], units: Sequence[int]) -> Definition:
    return Definition(
        symbol=symbol.id,
        name=symbol.name,
        kind=symbol.kind,
        path=symbol.path,
        lines=symbol.lines,
        header=index.get((symbol.path, symbol.header)),
        units=tuple(units),
        parent=symbol.parent,
        overrides=graph.overrides.get(symbol.id, ()),
        overridden_by=graph.overridden_by.get(symbol.id, ()),
        is_test=symbol.is_test,
        is_fixture=symbol.is_fixture,
        signature=symbol.signature,
    )


def _units_by_symbol(graph: RepoGraph, units: Sequence[PromptUnit]) -> dict[str, list[int]]:
    """Packed units inside each definition, nested definitions included; of a module those of its file."""
    inside: dict[str, list[int]] = {}
    for unit in units:
        if unit.path is not None and unit.lines is not None and unit.path in graph.symbols:  # a module's id is its path
            inside.setdefault(unit.path, []).append(unit.index)
        at = unit.symbol
        while at is not None:
            inside.setdefault(at, []).append(unit.index)
            at = graph.symbols[at].parent
    return inside


@dataclass(slots=True)
class _Statements:
    """Statements of files, packed or not."""

    graph: RepoGraph
    data: Mapping[str, bytes]
    index: Mapping[Key, int]
    _absent: dict[Key, AbsentStatement] = field(default_factory=dict)

    def absent(self, key: Key) -> AbsentStatement:
        if key not in self._absent:
            path, number = key
            unit = self.graph.files[path].units[number]
            text = self.data[path][unit.span.start : unit.span.end].decode("utf-8", "replace")
            self._absent[key] = AbsentStatement(path, unit.lines.start, " ".join(text.split()))
        return self._absent[key]

    def need(self, kind: NeedKind, keys: Sequence[Key]) -> Need:
        packed = tuple(self.index[key] for key in keys if key in self.index)
        return Need(kind, packed, None if packed else self.absent(keys[0]))


def _code_links(graph: RepoGraph, statements: _Statements) -> Iterator[PromptLink]:
    for link in graph.links:
        unit = statements.index.get((link.reference.path, link.reference.unit))
        if unit is None or (link.via is None and not link.handed and link.state is Resolution.EXTERNAL):
            continue
        key = (link.reference.path, link.via) if link.via is not None else None
        via = statements.index.get(key) if key is not None else None
        absent = statements.absent(key) if key is not None and via is None else None
        yield _prompt_link(link, unit, via, absent, tuple(_handed(link, statements)))


def _handed(link: Link, statements: _Statements) -> Iterator[Need]:
    for door in link.handed:
        yield statements.need(NeedKind.REEXPORT, (door,))


def _variables(graph: RepoGraph, statements: _Statements) -> Iterator[PromptLink]:
    """Of packed units of the files: the variables that other units of their functions bind."""
    for path in sorted({path for path, _ in statements.index} & graph.files.keys()):
        for use in graph.files[path].locals:
            unit = statements.index.get((path, use.unit))
            if unit is not None:
                needs = (statements.need(NeedKind.VARIABLE, [(path, bound) for bound in use.bound]),)
                yield PromptLink(
                    unit, use.name, Role.NAME, Resolution.EXTERNAL, (), path=path, line=use.line, needs=needs
                )


def _prompt_link(
    link: Link, unit: int, via: int | None, absent: AbsentStatement | None, needs: tuple[Need, ...]
) -> PromptLink:
    reference = link.reference
    return PromptLink(
        unit=unit,
        name=reference.name,
        role=reference.role,
        state=link.state,
        targets=link.targets,
        path=reference.path,
        line=reference.line,
        via=via,
        absent=absent,
        needs=needs,
    )


# ---------------------------------------------------------------- names in log and request


def _mentions(graph: RepoGraph, evidence: Evidence, task: Task, made: Assembled) -> Iterator[PromptLink]:
    """Links from log and request units to definitions that they name."""
    by_name: dict[str, list[str]] = {}
    for symbol in graph.symbols.values():
        if symbol.kind is not SymbolKind.MODULE and not symbol.is_test:
            by_name.setdefault(symbol.name, []).append(symbol.id)
    known = set(evidence.mentions)
    for unit in made.units:
        if unit.kind not in (UnitKind.LOG, UnitKind.REQUEST):
            continue
        text = made.text[unit.span.start : unit.span.end].decode("utf-8", "replace")
        found = dict.fromkeys(_IDENTIFIER.findall(text))
        for dotted in found:
            if unit.kind is UnitKind.LOG and not known.intersection((dotted, *dotted.split("."))):
                continue
            yield from _mention(dotted, by_name, unit.index)


def _mention(dotted: str, by_name: Mapping[str, list[str]], unit: int) -> Iterator[PromptLink]:
    """A link where the name is telling (not a plain English word) and few definitions bear it."""
    name = dotted.rpartition(".")[2]
    if not _TELLING.search(dotted) or name not in by_name:
        return
    targets = tuple(sorted(by_name[name]))
    if len(targets) > 1:
        owner = dotted.split(".")[-2] if "." in dotted else ""
        narrowed = tuple(t for t in targets if owner and f"{owner}.{name}" in t)
        targets = narrowed or targets
    if len(targets) > _MAX_CANDIDATES:
        return
    state = Resolution.RESOLVED if len(targets) == 1 else Resolution.AMBIGUOUS
    yield PromptLink(unit, name, Role.MENTION, state, targets, None, None)
