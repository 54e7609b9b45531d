"""What kept text refers to and the selection dropped. Pure; needs no model and no tokens.

A symbol is safe when at least its header is kept; a module when anything of it is; a name that an import brings
in also needs the import statement. `spec.omissions` adds what can be added. A module of which nothing is kept is a
note, whoever refers to it: what is used of it is judged name by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from agentctx.prompt import (
    AbsentImport,
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
from agentctx.spec.configs import key_of
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


def is_defined(definition: Definition, kept: Kept) -> bool:
    """Whether the header is kept (of a module: anything of it)."""
    if definition.header in kept:
        return True
    return definition.kind is SymbolKind.MODULE and any(unit in kept for unit in definition.units)


def state_of(definition: Definition, kept: Kept) -> SymbolState:
    """KEPT when every packed unit is, SIGNATURE when it is defined, else DROPPED."""
    if not is_defined(definition, kept):
        return SymbolState.DROPPED
    whole = all(unit in kept for unit in definition.units)
    return SymbolState.KEPT if whole else SymbolState.SIGNATURE


# ---------------------------------------------------------------- what kept text refers to


class _What(NamedTuple):
    """One thing that is referred to."""

    kind: str  # 'symbol' | 'ambiguous' | 'unknown' | 'import' | 'config'
    name: str
    symbols: tuple[str, ...] = ()
    via: int = -1
    absent: AbsentImport | None = None


@dataclass(slots=True)
class _Use:
    """`tier` is the lowest tier of the units that refer to it."""

    what: _What
    tier: int = 3
    sites: set[Site] = field(default_factory=set)


def _collect(index: PromptIndex, kept: Kept) -> list[_Use]:
    uses: dict[_What, _Use] = {}

    def add(what: _What, tier: int, site: Site) -> None:
        use = uses.setdefault(what, _Use(what))
        use.tier = min(use.tier, tier)
        use.sites.add(site)

    for unit, how in kept.items():
        section = index.document.units[unit].section
        for link in index.links[unit]:
            for what in _referred(index, kept, link):
                add(what, how.tier, (link.path or section, link.line))
        for config in index.configs.get(unit, ()):
            if config not in kept or kept[config].why is Why.REPAIRED:
                add(_What("config", "", via=config), how.tier, (section, None))
    return list(uses.values())


def _referred(index: PromptIndex, kept: Kept, link: PromptLink) -> list[_What]:
    found: list[_What] = []
    if link.via is not None and (link.via not in kept or kept[link.via].why is Why.REPAIRED):
        found.append(_What("import", "", via=link.via))
    if link.absent is not None:
        found.append(_What("import", "", absent=link.absent))
    if link.state is Resolution.EXTERNAL:
        return found
    known = [target for target in link.targets if target in index.document.definitions]
    if link.state is Resolution.UNKNOWN or not known:
        found.append(_What("unknown", link.name))
    elif link.state is Resolution.AMBIGUOUS:
        there = [target for target in known if is_defined(index.document.definitions[target], kept)]
        found += [_What("symbol", "", (target,)) for target in there]
        if len(there) < len(link.targets):  # the one that is meant may be one that was dropped
            found.append(_What("ambiguous", link.name, link.targets))
    else:
        found += [_What("symbol", "", (target,)) for target in known]
    return found


# ---------------------------------------------------------------- what became of it


def _judge(index: PromptIndex, kept: Kept, use: _Use) -> Omission:
    sites = tuple(sorted(use.sites, key=lambda site: (site[0], site[1] or 0)))
    what = use.what
    if what.absent is not None:
        return _absent_import(what.absent, use, sites)
    if what.kind in ("import", "config"):
        return _statement_or_section(index, kept, use, sites)
    if what.kind == "symbol":
        return _symbol(index.document.definitions[what.symbols[0]], kept, use, sites)
    state = SymbolState.AMBIGUOUS if what.kind == "ambiguous" else SymbolState.UNKNOWN
    return Omission(
        symbol=what.name,
        name=what.name,
        kind=_common_kind(index, what.symbols),
        path=None,
        line=None,
        state=state,
        severity="note",
        action=OmissionAction.FLAGGED,
        referenced_from=sites,
        candidates=what.symbols,
    )


def _symbol(definition: Definition, kept: Kept, use: _Use, sites: tuple[Site, ...]) -> Omission:
    state = state_of(definition, kept)
    action = OmissionAction.NOT_PACKED if definition.header is None else OmissionAction.FLAGGED
    severity = "note" if definition.kind is SymbolKind.MODULE else _severity(use.tier)
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


def _statement_or_section(index: PromptIndex, kept: Kept, use: _Use, sites: tuple[Site, ...]) -> Omission:
    via = use.what.via
    unit = index.document.units[via]
    there = via in kept
    return Omission(
        symbol=_place(unit),
        name=_statement(index.document, via) if use.what.kind == "import" else _section_name(index.document, via),
        kind=use.what.kind,
        path=unit.path,
        line=unit.lines.start if unit.lines else None,
        state=SymbolState.KEPT if there else SymbolState.DROPPED,
        severity="note" if there else _severity(use.tier),
        action=OmissionAction.REPAIRED if there else OmissionAction.FLAGGED,
        referenced_from=sites,
    )


def _absent_import(absent: AbsentImport, use: _Use, sites: tuple[Site, ...]) -> Omission:
    return Omission(
        symbol=f"{absent.path}:{absent.line}",
        name=absent.text,
        kind="import",
        path=absent.path,
        line=absent.line,
        state=SymbolState.DROPPED,
        severity=_severity(use.tier),
        action=OmissionAction.NOT_PACKED,
        referenced_from=sites,
    )


def _severity(tier: int) -> str:
    return "error" if tier <= 1 else "warning"


def _common_kind(index: PromptIndex, symbols: tuple[str, ...]) -> str:
    kinds = {definition.kind.value for symbol in symbols if (definition := index.definition(symbol)) is not None}
    return kinds.pop() if len(kinds) == 1 else "unknown"


def _place(unit: PromptUnit) -> str:
    return f"{unit.path or unit.section}:{unit.lines.start if unit.lines else unit.index}"


def _section_name(document: PromptDocument, unit: int) -> str:
    key = key_of(document.unit_text(unit)).decode("utf-8", "replace")
    return f"{key} in {document.units[unit].path}" if key else document.units[unit].path or ""


def _statement(document: PromptDocument, unit: int) -> str:
    return " ".join(document.unit_text(unit).decode("utf-8", "replace").split())
