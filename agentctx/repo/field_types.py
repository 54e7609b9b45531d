"""The class of a field, property, constant or module-level instance, as far as its own line tells. Pure."""

from __future__ import annotations

import re

from agentctx.source import Symbol, SymbolKind

_NAME = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_ANNOTATED = re.compile(r"^[\w.]+\s*:\s*([^=]+?)\s*(?:=|$)")
_CREATED = re.compile(rf"^[\w.]+(?:\s*:[^=]+)?\s*=\s*({_NAME})\(")
_COPIED = re.compile(r"^[\w.]+\s*=\s*([^\W\d]\w*)$")
_RETURNS = re.compile(r"->\s*(.+?)$")
_OPTIONAL = re.compile(rf"^(?:[\w.]+\.)?Optional\[\s*({_NAME})\s*\]$")
_WRAPPED = re.compile(rf"^(?:[\w.]+\.)?(?:Final|ClassVar|Annotated|InitVar|Mapped|Type|type)\[\s*({_NAME})\s*[\],]")
_PLAIN = re.compile(rf"^({_NAME})(?:\[.*\])?$")
_PROPERTIES = ("property", "cached_property", "hybrid_property", "reify")


def class_name(annotation: str) -> str | None:
    """`X` of `X`, `"X"`, `X[...]`, `Optional[X]`, `X | None`, `Final[X]`; None where it names no single class."""
    text = annotation.strip().strip("\"'").strip()
    parts = [part.strip() for part in text.split("|")] if "[" not in text.partition("|")[0] else [text]
    parts = [part for part in parts if part != "None"]
    if len(parts) != 1:
        return None
    found = _OPTIONAL.match(parts[0]) or _WRAPPED.match(parts[0]) or _PLAIN.match(parts[0])
    return found[1] if found else None


def _is_whole_call(line: str, opening: int) -> bool:
    """Whether the bracket at `opening` closes at the line's end: `X(1)`, not `X(1).y()`. Strings are skipped."""
    bare = re.sub(r"\"[^\"]*\"|'[^']*'", lambda s: "_" * len(s[0]), line)
    depth = 0
    for i in range(opening, len(bare)):
        depth += (bare[i] in "([{") - (bare[i] in ")]}")
        if depth == 0:
            return i == len(bare) - 1
    return line.endswith("...")  # the line was shortened


def type_of_value(symbol: Symbol, init: Symbol | None) -> str | None:
    """The dotted class of a constant, field or property, as written. `init`: the `__init__` of the field's class."""
    line = symbol.signature
    if symbol.kind is SymbolKind.METHOD:
        is_property = any(d.rpartition(".")[2] in _PROPERTIES for d in symbol.decorators)
        found = _RETURNS.search(line) if is_property else None
        return class_name(found[1]) if found else None
    if found := _ANNOTATED.match(line):
        return class_name(found[1])
    if (found := _CREATED.match(line)) and _is_whole_call(line, found.end() - 1):
        return found[1]
    copied = _COPIED.match(line)
    if copied is None or init is None or symbol.kind is not SymbolKind.FIELD:
        return None
    parameter = re.search(rf"[(,]\s*{re.escape(copied[1])}\s*:\s*([^,=)]+)", init.signature)
    return class_name(parameter[1]) if parameter else None
