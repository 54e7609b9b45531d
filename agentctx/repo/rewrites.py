"""Rewrites of source text, byte for byte of the same length, that a grammar understands better. Pure.

Spans of the rewritten text are spans of the file; names and texts are always taken from the file itself.
"""

from __future__ import annotations

import re

_MACRO = rb"[A-Z_][A-Z0-9_]{2,}"
_ARGUMENTS = rb"\((?:[^()\n]|\([^()\n]*\))*\)"
_KEYWORDS = (
    rb"(?:explicit|virtual|static|inline|const|constexpr|consteval|extern|void|int|auto|bool|char|short|long|unsigned|"
    rb"signed|float|double|size_t|template|class|struct|enum|union|operator|typename|friend|using|typedef|namespace|"
    rb"mutable|decltype|std)\b"
)
# Macros where the grammars expect none, and that mean nothing for the structure. Group 1 is blanked.
_MACROS = (
    # a macro by itself on a row: FMT_BEGIN_NAMESPACE, Q_OBJECT, JSON_HEDLEY_DIAGNOSTIC_PUSH
    re.compile(rb"^[ \t]*(" + _MACRO + rb"(?:" + _ARGUMENTS + rb")?)[ \t\r]*$", re.MULTILINE),
    # class API Name
    re.compile(
        rb"\b(?:class|struct|union|enum)\s+("
        + _MACRO
        + rb"(?:"
        + _ARGUMENTS
        + rb")?)(?=\s+[A-Za-z_]\w*\s*[:{<]|\s+\w+\s+final)"
    ),
    # API before a declaration
    re.compile(
        rb"(?<![\w.>:#])("
        + _MACRO
        + rb"(?:"
        + _ARGUMENTS
        + rb")?)(?=[ \t]+(?:"
        + _MACRO
        + rb"[ \t]+)*(?:"
        + _KEYWORDS
        + rb"|~))"
    ),
    re.compile(
        rb"^[ \t]*(" + _MACRO + rb")(?=[ \t]+[A-Za-z_][\w:]*(?:<[^\n;{}]*>)?[ \t*&]+[A-Za-z_~][\w:]*[ \t]*[(;={\[])",
        re.MULTILINE,
    ),
    # f() NOEXCEPT {
    re.compile(
        rb"\)[ \t\r\n]*(?:const[ \t\r\n]+)?("
        + _MACRO
        + rb"(?:"
        + _ARGUMENTS
        + rb")?)(?=\s*(?:[;{:]|->|=\s*(?:0|default|delete)|override|final))"
    ),
)
_BATS = re.compile(rb"^([ \t]*)@test[ \t]+((?:\"[^\"\n]*\"|'[^'\n]*'|[^\s{]+))([ \t]*)\{", re.MULTILINE)
# TypeScript that the grammar doesn't know. Group 1 is blanked.
_MODERN = (
    # interface A<in out T, /** kept */ out U = V>
    re.compile(
        rb"[<,]\s*(?:/\*(?:[^*]|\*(?!/))*\*/\s*|//[^\n]*\n\s*)*(in\s+out|in|out)(?=\s+[A-Za-z_$][\w$]*\s*(?:[,>=]|extends\b))"
    ),
    re.compile(rb"\bexport\s+(type)(?=\s+\*)"),
    re.compile(rb"\bstatic\s+(accessor)(?=\s+[#\w$])"),
)
# A call signature on its own row ends what is above it: `): A\n  <T>(x: T): B`. Group 1 becomes a semicolon.
_CALL_SIGNATURE = re.compile(rb"^[ \t]*([ \t])<[A-Za-z_$][\w$]*\s*(?:[,>=]|extends\b)", re.MULTILINE)


def without_macros(data: bytes) -> bytes:
    """C and C++ with blanks in place of macros that stand where the grammar expects a declaration's own words."""
    out = bytearray(data)
    for pattern in _MACROS:
        for found in pattern.finditer(bytes(out)):
            start, end = found.span(1)
            out[start:end] = b" " * (end - start)
    return bytes(out)


def plain_types(data: bytes) -> bytes:
    """TypeScript without variance marks, `export type *` and `static accessor`, call signatures ended by `;`."""
    out = bytearray(data)
    for pattern in _MODERN:
        for found in pattern.finditer(data):
            start, end = found.span(1)
            out[start:end] = re.sub(rb"\S", b" ", data[start:end])
    for found in _CALL_SIGNATURE.finditer(data):
        out[found.start(1)] = ord(";")
    return bytes(out)


def bats_functions(data: bytes) -> bytes:
    """Bash with `@test "name" {` written as a function's head, as bats itself does before it runs a file."""
    return _BATS.sub(_function, data) if b"@test" in data else data


def _function(found: re.Match[bytes]) -> bytes:
    whole = found[0]
    n_name = len(whole) - len(found[1]) - len(found[3]) - 3
    return found[1] + b"t" * n_name + b"()" + found[3] + b"{"
