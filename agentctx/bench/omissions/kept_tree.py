"""Kept text as a tree of files that an oracle can read: every kept line stands where it stood.

A left-out run becomes blank lines, in Python with `...` first, at the indentation that the prompt's own mark has: so
a header whose body was left out still parses. At the left margin, and for nothing but blank lines and comments,
nothing is needed. Files of which nothing is kept are not there.

`from __future__ import` names nothing, it says how the file is read: it stays. A stub file beside its code is never
there: it is the code that is selected, and the oracle would not look at it.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentctx.prompt import PromptDocument, PromptUnit
from agentctx.source import UnitKind

STUBS: Mapping[str, bytes] = {"python": b"..."}  # of other languages a left-out run is blank
_FUTURE = b"from __future__ import "
_COMMENTS: Mapping[str, tuple[bytes, ...]] = {"python": (b"#",)}


def kept_files(text: PromptDocument, data: Mapping[str, bytes], languages: frozenset[str]) -> dict[str, bytes]:
    """The files of `languages` by path. `text`: the contiguous prompt; `data`: the files as they are."""
    by_path: dict[str, list[PromptUnit]] = {}
    for unit in text.units:
        if unit.path is not None and unit.lines is not None and text.files[unit.path].language in languages:
            by_path.setdefault(unit.path, []).append(unit)
    marks = _marks(text)
    files = {path: _file(text, units, marks, data[path]) for path, units in sorted(by_path.items())}
    return without_stubs(files, data)


def without_stubs(files: Mapping[str, bytes], data: Mapping[str, bytes]) -> dict[str, bytes]:
    """`files` without Python's stub files whose code is in the repository."""
    return {path: text for path, text in files.items() if not (path.endswith(".pyi") and path[:-1] in data)}


def _marks(text: PromptDocument) -> dict[int, bytes]:
    """The indentation of the mark before a unit, by unit; -1 - unit: of the mark after it."""
    found: dict[int, bytes] = {}
    for unit in text.units:
        if unit.kind is UnitKind.ELISION:
            line = text.unit_text(unit.index)
            indent = line[: len(line) - len(line.lstrip())]
            found[unit.index + 1] = found[-unit.index] = indent
    return found


def _file(text: PromptDocument, units: list[PromptUnit], marks: Mapping[int, bytes], data: bytes) -> bytes:
    language = text.files[units[0].path or ""].language or ""
    lines = data.split(b"\n")
    out: list[bytes] = []
    at = 0  # lines written
    last = 0  # the unit before
    for unit in sorted(units, key=lambda unit: unit.lines.start if unit.lines else 0):
        assert unit.lines is not None
        out.append(_run(language, lines[at : unit.lines.start - 1], marks.get(unit.index)))
        out.append(text.unit_text(unit.index))
        at, last = unit.lines.end, unit.index
    out.append(_run(language, lines[at:-1], marks.get(-1 - last)))
    return b"".join(out)


def _run(language: str, lines: list[bytes], indent: bytes | None) -> bytes:
    """What stands for left-out lines."""
    if not lines:
        return b""
    comments = _COMMENTS.get(language, ())
    blank = all(not line.strip() or line.lstrip().startswith(comments) for line in lines)
    stub = b"" if blank or not indent else indent + STUBS.get(language, b"")
    modes = [line if language == "python" and line.startswith(_FUTURE) else b"" for line in lines]
    return stub + b"".join(line + b"\n" for line in modes)
