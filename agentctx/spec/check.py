"""What kept text refers to and the selection dropped. Pure; needs no model and no tokens.

A symbol is safe when at least its header is kept; a module when anything of it is; a name that an import brings
in also needs the import statement. `spec.omissions` adds what can be added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from agentctx.prompt import (
    Definition,
    KeptUnit,
    Omission,
    OmissionAction,
    OmissionReport,
    PromptDocument,
    PromptLink,
    PromptUnit,
    Selection,
    SymbolState,
    Why,
)
from agentctx.source import Resolution, SymbolKind
from agentctx.spec.index import PromptIndex

SEVERITIES = ("error", "warning", "note", "none")
Kept = dict[int, KeptUnit]
Site = tuple[str, int | None]


def check(document: PromptDocument, selection: Selection, *, index: PromptIndex | None = None) -> OmissionReport:
    """Every symbol that kept text refers to, with its state: worst first, then by symbol."""
    known = index if index is not None else PromptIndex(document)
    kept = {unit.unit: unit for unit in selection.kept}
    found = [_judge(known, kept, use) for use in _collect(known, kept)]
    found.sort(key=lambda o: (SEVERITIES.index(o.severity), o.symbol, o.kind, o.candidates))
    return OmissionReport(tuple(found))


def state_of(definition: Definition, kept: Kept) -> SymbolState:
    """KEPT when every packed unit is, SIGNATURE when the header is (of a module: anything), else DROPPED."""
    has_header = definition.header in kept
    if definition.kind is SymbolKind.MODULE:
        has_header = has_header or any(unit in kept for unit in definition.units)
    if not has_header:
        return SymbolState.DROPPED
    whole = all(unit in kept for unit in definition.units)
    return SymbolState.KEPT if whole else SymbolState.SIGNATURE


# ---------------------------------------------------------------- what kept text refers to


@dataclass(slots=True)
class _Use:
    """One thing that is referred to. `tier` is the lowest tier of the units that do."""

    kind: str  # 'symbol' | 'ambiguous' | 'unknown' | 'import'
    name: str
    symbols: tuple[str, ...] = ()
    via: int | None = None
    tier: int = 3
    sites: set[Site] = field(default_factory=set)


def _collect(index: PromptIndex, kept: Kept) -> list[_Use]:
    uses: dict[tuple[str, str | int, tuple[str, ...]], _Use] = {}
    for unit, how in kept.items():
        for link in index.links[unit]:
            for use in _uses(index, kept, link):
                key = (use.kind, use.name if use.via is None else use.via, use.symbols)
                known = uses.setdefault(key, use)
                known.tier = min(known.tier, how.tier)
                known.sites.add((link.path or index.document.units[unit].section, link.line))
    return list(uses.values())


def _uses(index: PromptIndex, kept: Kept, link: PromptLink) -> Iterator[_Use]:
    if link.via is not None and (link.via not in kept or kept[link.via].why is Why.REPAIRED):
        yield _Use("import", link.name, via=link.via)
    if link.state is Resolution.EXTERNAL:
        return
    known = [definition for target in link.targets if (definition := index.definition(target)) is not None]
    if link.state is Resolution.AMBIGUOUS and known:
        known = [definition for definition in known if state_of(definition, kept) is not SymbolState.DROPPED]
        if not known:
            yield _Use("ambiguous", link.name, tuple(sorted(link.targets)))
    elif link.state is Resolution.UNKNOWN or not known:
        yield _Use("unknown", link.name)
        return
    for definition in known:
        yield _Use("symbol", definition.name, (definition.symbol,))


# ---------------------------------------------------------------- what became of it


def _judge(index: PromptIndex, kept: Kept, use: _Use) -> Omission:
    sites = tuple(sorted(use.sites, key=lambda site: (site[0], site[1] or 0)))
    if use.via is not None:
        return _import(index, kept, use, sites)
    if use.kind == "symbol":
        return _symbol(index.document.definitions[use.symbols[0]], kept, use, sites)
    state = SymbolState.AMBIGUOUS if use.kind == "ambiguous" else SymbolState.UNKNOWN
    return Omission(
        symbol=use.name,
        name=use.name,
        kind=_common_kind(index, use.symbols),
        path=None,
        line=None,
        state=state,
        severity="note",
        action=OmissionAction.FLAGGED,
        referenced_from=sites,
        candidates=use.symbols,
    )


def _symbol(definition: Definition, kept: Kept, use: _Use, sites: tuple[Site, ...]) -> Omission:
    state = state_of(definition, kept)
    action = OmissionAction.NOT_PACKED if definition.header is None else OmissionAction.FLAGGED
    severity = _severity(use.tier)
    if state is not SymbolState.DROPPED:
        repaired = definition.header in kept and kept[definition.header].why is Why.REPAIRED
        action, severity = (OmissionAction.REPAIRED, "note") if repaired else (OmissionAction.NONE, "none")
    return Omission(
        symbol=definition.symbol,
        name=definition.name,
        kind=definition.kind,
        path=definition.path,
        line=definition.lines.start,
        state=state,
        severity=severity,
        action=action,
        referenced_from=sites,
    )


def _import(index: PromptIndex, kept: Kept, use: _Use, sites: tuple[Site, ...]) -> Omission:
    assert use.via is not None
    unit = index.document.units[use.via]
    there = use.via in kept
    return Omission(
        symbol=_place(unit),
        name=_statement(index.document, use.via),
        kind="import",
        path=unit.path,
        line=unit.lines.start if unit.lines else None,
        state=SymbolState.KEPT if there else SymbolState.DROPPED,
        severity="note" if there else _severity(use.tier),
        action=OmissionAction.REPAIRED if there else OmissionAction.FLAGGED,
        referenced_from=sites,
    )


def _severity(tier: int) -> str:
    return "error" if tier <= 1 else "warning"


def _common_kind(index: PromptIndex, symbols: tuple[str, ...]) -> str:
    kinds = {definition.kind.value for symbol in symbols if (definition := index.definition(symbol)) is not None}
    return kinds.pop() if len(kinds) == 1 else "unknown"


def _place(unit: PromptUnit) -> str:
    return f"{unit.path or unit.section}:{unit.lines.start if unit.lines else unit.index}"


def _statement(document: PromptDocument, unit: int) -> str:
    return " ".join(document.unit_text(unit).decode("utf-8", "replace").split())
