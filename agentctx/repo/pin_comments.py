"""Comments that pin: `# agentctx: pin` keeps the definition that it stands in or above, `# agentctx: pin file` all.

Pure. The comment must begin as comments of the language do; what stands behind it on the line is the user's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from agentctx.repo.languages import comment_of
from agentctx.source import FileSyntax

MARK = b"agentctx: pin"
_MARK = re.compile(rb"agentctx: pin(?P<file> file)?\b")
OPENERS = (b"#", b"//", b"/*", b"*", b"<!--", b"--", b";")


def marked(path: str, data: bytes) -> Iterator[tuple[int, bool]]:
    """(byte, whether the whole file is meant) of the marks in comments."""
    own = comment_of(path)[0].encode()
    for found in _MARK.finditer(data):
        line = data[data.rfind(b"\n", 0, found.start()) + 1 : found.start()].rstrip()
        opener = next((one for one in (own, *OPENERS) if line.endswith(one)), None)
        # Something else right before it: a text about such comments.
        if opener is not None and line[: -len(opener)][-1:].isspace() | (line == opener):
            yield found.start(), found["file"] is not None


def comment_pins(files: Mapping[str, FileSyntax], data: Mapping[str, bytes]) -> tuple[tuple[str, int], ...]:
    """(path, unit) of what comments pin, by path and unit."""
    pins: set[tuple[str, int]] = set()
    for path in sorted(files):
        text = data.get(path, b"")
        if MARK in text:
            pins.update((path, unit) for unit in _units(files[path], marked(path, text)))
    return tuple(sorted(pins))


def _units(file: FileSyntax, marks: Iterable[tuple[int, bool]]) -> Iterator[int]:
    for byte, whole in marks:
        if whole:
            yield from (unit.index for unit in file.units)
            return
        here = next((unit for unit in file.units if unit.span.start <= byte < unit.span.end), None)
        if here is not None:
            symbol = next((one for one in file.symbols if one.id == here.symbol and one.id != file.path), None)
            spans = [symbol.span] if symbol is not None else []
            yield here.index
            yield from (u.index for u in file.units for span in spans if span.start <= u.span.start < span.end)
