"""The class of a field, property, constant or module-level instance, as far as its own line tells. Pure."""

from __future__ import annotations

import re

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
