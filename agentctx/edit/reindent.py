"""Moving a Python definition to another indentation without touching the inside of its strings. Pure."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass

from agentctx.edit.text import indent_of


@dataclass(frozen=True, slots=True)
class Place:
    """Where a definition goes: the indentation of its first line and of its body; `old` are the lines it replaces."""

    indent: str
    body_indent: str
    old: frozenset[str]

    @property
    def step(self) -> str:
        return self.body_indent[len(self.indent) :]


def rebase(lines: Sequence[str], inside: frozenset[int], header_lines: int, place: Place) -> list[str]:
    """`lines` of one definition that starts at column 0, moved to `place`.

    `header_lines` counts decorators and signature. The lines `inside` a string stay as they are, unless only the
    moved line is one of the old ones.
    """
    ours = next((indent_of(line) for line in lines[header_lines:] if line.strip()), "") or "    "
    out = []
    for number, line in enumerate(lines):
        if not line.strip():
            moved = line if number in inside else ""
        elif number < header_lines:
            moved = place.indent + _convert(line, ours, place.step)
        else:
            moved = _move_body(line, ours, place)
        keep = number in inside and (line in place.old or moved not in place.old)
        out.append(line if keep else moved)
    return out


def _move_body(line: str, ours: str, place: Place) -> str:
    if line.startswith(ours):
        return place.body_indent + _convert(line[len(ours) :], ours, place.step)
    return place.body_indent + line.lstrip(" \t")  # a comment or a docstring's line that stands left of the body


def _convert(line: str, ours: str, step: str) -> str:
    """`line` with its leading `ours` units as `step` units, where one is tabs and the other spaces."""
    if ("\t" in ours) == ("\t" in step) or not step:
        return line
    n_units = 0
    while line.startswith(ours):
        line, n_units = line[len(ours) :], n_units + 1
    return step * n_units + line


def string_lines(lines: Sequence[str]) -> frozenset[int]:
    """Numbers (0-based) of the lines that start inside a string, docstrings aside. `lines` must parse."""
    code = "\n".join(lines) + "\n"
    docs = _docstring_starts(code)
    inside: set[int] = set()
    opened: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        kind = tokenize.tok_name[token.type]
        if kind == "FSTRING_START":
            opened.append(token.start[0])
        elif kind == "FSTRING_END":
            inside.update(range(opened.pop(), token.end[0]))
        elif kind == "STRING" and token.start[0] not in docs:
            inside.update(range(token.start[0], token.end[0]))
    return frozenset(inside)


def _docstring_starts(code: str) -> frozenset[int]:
    return frozenset(
        node.body[0].lineno
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and ast.get_docstring(node, clean=False) is not None
    )
