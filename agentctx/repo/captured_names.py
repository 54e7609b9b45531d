"""Nodes as names: of definitions, of what they belong to, of types and decorators."""

from __future__ import annotations

import re

from tree_sitter import Node

NAME_CHARS = 120  # of tests, whose names are sentences

_SEPARATOR = re.compile(r"\s*(?:::|\\|->|\?\.|\.)\s*")
_LEAD = re.compile(r"^(?:[@#*&?!~:\[(\s]|\b(?:new|dyn|const|mut|virtual|public|protected|private|override)\s)+")
_QUOTES = "\"'`"


def text_of(data: bytes, node: Node) -> str:
    return data[node.start_byte : node.end_byte].decode("utf-8", "replace")


def plain_name(data: bytes, node: Node) -> str:
    """The name that the node defines: strings without their quotes, `A::B` as `A.B`, all on one line."""
    if data.startswith(b"@test", node.start_byte):  # bats: the name is a string, which ends behind the node
        return test_name(data, node)
    text = test_name(data, node)
    if " " in text and "::" not in text:
        return text
    return _SEPARATOR.sub(".", text).strip(".") or "?"


def test_name(data: bytes, node: Node) -> str:
    """A string without its quotes, on one line."""
    text = " ".join(text_of(data, node).split())
    if text.startswith("@test"):
        text = data[node.start_byte + 5 : data.find(b"{", node.end_byte)].decode("utf-8", "replace").strip()
    if len(text) > 1 and text[0] in _QUOTES and text[-1] in _QUOTES:
        text = text[1:-1] if text.count(text[0]) == 2 else re.sub("[\"'`]", "", text)
    return text.lstrip(":@")[:NAME_CHARS] or "?"


def dotted_name(data: bytes, node: Node) -> str:
    """`new a::B<C>(d)` -> `a.B`: a type or decorator without arguments, dotted; '' where nothing is left."""
    text = " ".join(text_of(data, node).split())
    if text.startswith("/*"):  # PHP: `/** @test */`
        tag = re.search(r"@(\w+)", text)
        return tag[1] if tag else ""
    text = _LEAD.sub("", text)
    text = re.split(r"[<(\[{]", text, maxsplit=1)[0].strip()
    return _SEPARATOR.sub(".", text).strip(". ")


def owner_name(data: bytes, node: Node) -> str | None:
    """What a member is defined on, from outside: `A.prototype` is A, `module.exports` is exports."""
    name = dotted_name(data, node)
    if name == "module.exports":
        return "exports"
    return name.removesuffix(".prototype") or None
