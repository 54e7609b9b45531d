"""The texts that `python_exprs` writes, and annotations, as trees that can be walked. Pure, remembered.

A `Term` is what an expression starts with and the steps from there: `{Client}.get()^` starts with an annotation and
goes on with an attribute, a call and an entering.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_TOKEN = re.compile(r"\.\w+|\(\)|\[\]|#\d+|%\w|[*^]")
_NAME = re.compile(r"![\w.]+|[@$]?\w+|\?")
_ANNOTATION = re.compile(r"[\w.]+|[\[\],|]|\.\.\.")
MAX_NESTING = 8


@dataclass(frozen=True, slots=True)
class Term:
    """`kind`: 'name', 'type' (`text` is an annotation), 'choice' or 'tuple' (of `parts`)."""

    kind: str
    text: str
    parts: tuple[Term, ...]
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Annotation:
    """`name[args]`; a union is named '|', a list of parameters is named '['."""

    name: str
    args: tuple[Annotation, ...] = ()


_UNKNOWN = Term("name", "?", (), ())


@lru_cache(maxsize=50_000)
def parse_value(text: str) -> Term:
    """The tree of a text; what is no such text is unknown."""
    term, end = _term(text, 0, 0)
    return term if end == len(text) else _UNKNOWN


def _term(text: str, at: int, depth: int) -> tuple[Term, int]:
    """The term at a position, and where it ends."""
    if at >= len(text) or depth > MAX_NESTING:
        return _UNKNOWN, len(text) + 1
    opening = text[at]
    if opening == "{":
        end = text.find("}", at)
        end = len(text) if end < 0 else end
        steps, after = _steps(text, end + 1)
        return Term("type", text[at + 1 : end], (), steps), after
    if opening in "(<":
        closing, between = (")", "|") if opening == "(" else (">", ",")
        parts: list[Term] = []
        at += 1
        while at < len(text):
            part, at = _term(text, at, depth + 1)
            parts.append(part)
            if at >= len(text) or text[at] not in closing + between:
                return _UNKNOWN, len(text) + 1
            at += 1
            if text[at - 1] == closing:
                break
        steps, after = _steps(text, at)
        return Term("choice" if opening == "(" else "tuple", "", tuple(parts), steps), after
    found = _NAME.match(text, at)
    if found is None:
        return _UNKNOWN, len(text) + 1
    steps, after = _steps(text, found.end())
    return Term("name", found[0], (), steps), after


def _steps(text: str, at: int) -> tuple[tuple[str, ...], int]:
    steps: list[str] = []
    while (found := _TOKEN.match(text, at)) is not None:
        steps.append(found[0])
        at = found.end()
    return tuple(steps), at


@lru_cache(maxsize=20_000)
def parse_annotation(text: str) -> Annotation:
    """The tree of an annotation without quotes and white space; an unknown name where it is none."""
    tokens = _ANNOTATION.findall(text)
    if sum(map(len, tokens)) != len(text) or text.count("[") > MAX_NESTING:
        return Annotation("?")
    made, at = _union(tokens, 0)
    return made if at == len(tokens) else Annotation("?")


def _union(tokens: list[str], at: int) -> tuple[Annotation, int]:
    items: list[Annotation] = []
    while True:
        item, at = _single(tokens, at)
        items.append(item)
        if at >= len(tokens) or tokens[at] != "|":
            return (items[0] if len(items) == 1 else Annotation("|", tuple(items))), at
        at += 1


def _single(tokens: list[str], at: int) -> tuple[Annotation, int]:
    if at >= len(tokens):
        return Annotation("?"), at
    name, at = (tokens[at], at + 1) if tokens[at] != "[" else ("[", at)
    if at >= len(tokens) or tokens[at] != "[":
        return Annotation(name), at
    args: list[Annotation] = []
    at += 1
    while at < len(tokens) and tokens[at] != "]":
        before = at
        arg, at = _union(tokens, at)
        args.append(arg)
        at += at < len(tokens) and tokens[at] == ","
        if at == before:
            break
    return Annotation(name, tuple(args)), at + 1
