"""Identifiers that a text mentions, without words, keywords and noise. Pure."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable

MAX_MENTIONS = 400

_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_NOISE = frozenset(
    [
        *("self", "cls", "args", "kwargs", "py", "src", "tests", "site", "packages", "stdout", "stderr", "locals"),
        *("pytest", "_pytest", "pluggy", "fixture", "fixtures", "request", "parametrize", "mark", "conftest"),
        *("PosixPath", "WindowsPath", "Path", "INTERNALERROR", "Traceback", "__init__", "__call__", "__main__"),
    ]
)
_SCRIPT_NOISE = frozenset(
    [
        *("js", "ts", "jsx", "tsx", "mjs", "cjs", "node_modules", "anonymous", "async", "await", "const", "let", "var"),
        *(
            "function",
            "new",
            "this",
            "null",
            "undefined",
            "true",
            "false",
            "typeof",
            "throw",
            "catch",
            "export",
            "void",
        ),
        *(
            "require",
            "module",
            "exports",
            "console",
            "Object",
            "Array",
            "Promise",
            "String",
            "Number",
            "Boolean",
            "Error",
        ),
        *("Symbol", "Function", "Context", "UserContext", "TestContext", "AssertionError", "ERR_ASSERTION", "NaN"),
        *("describe", "it", "test", "expect", "beforeEach", "afterEach", "beforeAll", "afterAll", "before", "after"),
        *("received", "expected", "toBe", "toEqual", "toStrictEqual", "toThrow", "toMatchObject", "toBeTruthy"),
        *("toMatchSnapshot", "toMatchInlineSnapshot", "toHaveBeenCalledWith", "deepEqual", "strictEqual"),
        *("deepStrictEqual", "process", "processTicksAndRejections", "no", "not", "ok", "src", "dist", "lib"),
    ]
)
_IGNORED = _NOISE | _SCRIPT_NOISE | frozenset(keyword.kwlist) | frozenset(keyword.softkwlist) | frozenset(dir(builtins))
_QUOTES = "'\"`"
_CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_STRING = re.compile(r"\"[^\"]*\"|'[^']*'")


def identifiers(texts: Iterable[str], *, code: bool = False) -> dict[str, None]:
    """Distinct identifiers in order; of a dotted name the last part first.

    In prose only what looks like a name counts: CamelCase, snake_case, dotted, quoted, or called. In `code` every
    identifier outside of strings does.
    """
    found: dict[str, None] = {}
    for text in texts:
        text = _STRING.sub(" ", text) if code else text
        for match in _DOTTED.finditer(text):
            if code or _looks_like_name(text, match):
                for part in reversed(match[0].split(".")):
                    if len(part) > 1 and part not in _IGNORED:
                        found[part] = None
    return found


def _looks_like_name(text: str, match: re.Match[str]) -> bool:
    word = match[0]
    if "." in word or "_" in word.strip("_") or (word.startswith("_") and len(word) > 2):
        return True
    if _CAMEL.search(word):
        return True
    before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
    return after == "(" or (before != "" and before in _QUOTES and after == before)


def rank_mentions(groups: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """The groups one after the other, distinct, at most `MAX_MENTIONS`."""
    merged: dict[str, None] = {}
    for group in groups:
        merged.update(dict.fromkeys(group))
    return tuple(merged)[:MAX_MENTIONS]
