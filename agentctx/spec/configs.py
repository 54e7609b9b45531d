"""Configuration that the request or the log names: which sections of which packed files. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from agentctx.prompt import PromptDocument, Section
from agentctx.source import UnitKind

SPOKEN = (Section.REQUEST, Section.LOG)
_WORD = re.compile(rb"[\w-]{3,}")


def named_configs(document: PromptDocument) -> Mapping[int, tuple[int, ...]]:
    """By unit of the request or the log: the units of configuration files that it names.

    Of a file those sections whose key is named anywhere in the request or the log, else its first section.
    """
    texts: dict[str, list[int]] = {}
    for unit in document.units:
        if unit.kind is UnitKind.TEXT and unit.path is not None:
            texts.setdefault(unit.path, []).append(unit.index)
    if not texts:
        return {}
    spoken = {unit.index: document.unit_text(unit.index) for unit in document.units if unit.section in SPOKEN}
    words = frozenset(_WORD.findall(b"".join(spoken.values())))
    wanted = {path: _wanted(document, units, words) for path, units in texts.items()}
    found: dict[int, tuple[int, ...]] = {}
    for number, talk in spoken.items():
        named = [path for path in sorted(texts) if _names(talk, path)]
        if named:
            found[number] = tuple(sorted(config for path in named for config in wanted[path]))
    return found


def _wanted(document: PromptDocument, units: list[int], words: frozenset[bytes]) -> list[int]:
    return [unit for unit in units if key_of(document.unit_text(unit)) in words] or units[:1]


def _names(talk: bytes, path: str) -> bool:
    name = PurePosixPath(path).name.encode("utf-8", "surrogateescape")
    return re.search(rb"(?<![\w.-])" + re.escape(name) + rb"(?![\w-])", talk) is not None


def key_of(text: bytes) -> bytes:
    """The first word of a section: its heading or key."""
    found = _WORD.search(text)
    return found.group() if found else b""
