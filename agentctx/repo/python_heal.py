"""Python with a bracket that nobody closed, made readable for the parser byte for byte.

A bracket that is still open at a line that can't stand inside of an expression (`def`, `class`, `import`, `return`,
...) is taken away, so that the parser finds what follows. Only blanks are put in place of it: all positions stay.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    rb"#[^\n]*|(?P<quote>\"\"\"|''')(?:\\.|(?!(?P=quote)).)*(?:(?P=quote)|\Z)"
    rb"|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?|[(\[{]|[)\]}]|\n",
    re.DOTALL,
)
_STATEMENT = re.compile(
    rb"[ \t]*(?:(?:(?:async[ \t]+)?def|class|import|global|nonlocal|del)[ \t]+\w|@\w|from[ \t]+[\w.]+[ \t]+import\b"
    rb"|(?:return|raise|assert|while|with)\b|(?:pass|break|continue)[ \t]*(?:#|\r?\n|\Z)|try[ \t]*:)"
)
_HEADER = re.compile(rb"[ \t]*(?:(?:async[ \t]+)?def|class)\b[^\n]*\Z")
_PAIRS = {b")": b"(", b"]": b"[", b"}": b"{"}


def healed(data: bytes) -> bytes:
    """The text without brackets that stay open; as long as `data`, and equal to it where nothing is wrong."""
    made = bytearray(data)
    stack: list[tuple[int, bytes]] = []
    for found in _TOKEN.finditer(data):
        token = found[0]
        if token in (b"(", b"[", b"{"):
            stack.append((found.start(), token))
        elif token in _PAIRS:
            if stack and stack[-1][1] == _PAIRS[token]:
                stack.pop()
        elif token == b"\n" and stack and _STATEMENT.match(data, found.end()):
            for at, _ in stack:
                _take_away(made, data, at)
            stack.clear()
    return bytes(made)


def _take_away(made: bytearray, data: bytes, at: int) -> None:
    """Mutates `made`. The rest of a header is replaced by `():`, so that its definition is not lost."""
    start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
    end = end if end >= 0 else len(data)
    if _HEADER.match(data[start:at]) and end - at >= 2:
        made[at:end] = b"():"[: end - at].ljust(end - at)
    elif made[at : at + 1] == data[at : at + 1]:
        made[at : at + 1] = b" "
