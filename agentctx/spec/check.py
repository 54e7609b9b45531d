"""What kept text refers to and the selection dropped. Pure; needs no model and no tokens.

A symbol is safe when at least its header is kept, or its signature line; a module when anything of it is; a name that
an import brings in also needs the import statement, and a function's variable a statement that binds it.
`spec.omissions` adds what can be added. Three things are notes: a module of which nothing is kept, since what is used
of it is judged name by name; a statement by which a module in between only hands on what is kept itself; and a
variable of a function that was cut on purpose (of one that is to be kept whole it is an error).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from agentctx.prompt import (
    AbsentStatement,
    Definition,
    KeptUnit,
    NeedKind,
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
_STATEMENTS = ("import", "config", *NeedKind)
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
    """Whether the header or its signature line is kept (of a module: anything of it)."""
    if definition.header in kept or definition.line in kept:
        return True
    return definition.kind is SymbolKind.MODULE and any(unit in kept for unit in definition.units)


def state_of(definition: Definition, kept: Kept) -> SymbolState:
    """KEPT when every packed unit is, SIGNATURE when it is defined, else DROPPED."""
    if not is_defined(definition, kept):
        return SymbolState.DROPPED
    by_line = definition.header not in kept and definition.kind is not SymbolKind.MODULE
    whole = not by_line and all(unit in kept for unit in definition.units)
    return SymbolState.KEPT if whole else SymbolState.SIGNATURE


def nearest(units: Sequence[int], user: int) -> int:
    """Of the statements of which one will do, the last before the use, else the first; -1 where there is none."""
    before = [unit for unit in units if unit < user]
    return before[-1] if before else next(iter(units), -1)


# ---------------------------------------------------------------- what kept text refers to


class _What(NamedTuple):
    """One thing that is referred to."""

    kind: str  # 'symbol' | 'ambiguous' | 'unknown' | 'import' | 'config', or a NeedKind
    name: str
    symbols: tuple[str, ...] = ()
    unit: int = -1  # of a statement or a section
    either: tuple[int, ...] = ()  # statements of which one will do, `unit` too
    absent: AbsentStatement | None = None


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
                add(_What("config", "", unit=config), how.tier, (section, None))
    return list(uses.values())


def _referred(index: PromptIndex, kept: Kept, link: PromptLink) -> list[_What]:
    found: list[_What] = []
    if link.via is not None and (link.via not in kept or kept[link.via].why is Why.REPAIRED):
        found.append(_What("import", "", unit=link.via))
    if link.absent is not None:
        found.append(_What("import", "", absent=link.absent))
    for need in link.needs:
        if not any(unit in kept and kept[unit].why is not Why.REPAIRED for unit in need.units):
            name = link.name if need.kind is NeedKind.VARIABLE else ""
            unit = nearest(need.units, link.unit)
            found.append(_What(need.kind, name, unit=unit, either=need.units, absent=need.absent))
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
        return _absent(what.absent, use, sites)
    if what.kind in _STATEMENTS:
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
        repaired = any(one in kept and kept[one].why is Why.REPAIRED for one in (definition.header, definition.line))
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
    what = use.what
    unit = index.document.units[what.unit]
    there = any(unit in kept for unit in what.either or (what.unit,))
    name = _section_name if what.kind == "config" else _statement
    return Omission(
        symbol=_place(unit),
        name=what.name or name(index.document, what.unit),
        kind=what.kind,
        path=unit.path,
        line=unit.lines.start if unit.lines else None,
        state=SymbolState.KEPT if there else SymbolState.DROPPED,
        severity="note" if there else _of_statement(use),
        action=OmissionAction.REPAIRED if there else OmissionAction.FLAGGED,
        referenced_from=sites,
    )


def _absent(absent: AbsentStatement, use: _Use, sites: tuple[Site, ...]) -> Omission:
    return Omission(
        symbol=f"{absent.path}:{absent.line}",
        name=use.what.name or absent.text,
        kind=use.what.kind,
        path=absent.path,
        line=absent.line,
        state=SymbolState.DROPPED,
        severity=_of_statement(use),
        action=OmissionAction.NOT_PACKED,
        referenced_from=sites,
    )


def _severity(tier: int) -> str:
    return "error" if tier <= 1 else "warning"


def _of_statement(use: _Use) -> str:
    if use.what.kind == NeedKind.REEXPORT:
        return "note"
    if use.what.kind == NeedKind.VARIABLE and use.tier > 0:
        return "note"  # what a call site is cut from binds its arguments: no part of any interface
    return _severity(use.tier)


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
