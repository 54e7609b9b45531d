"""The definition that an edit is about. Pure."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from agentctx.edit.text import encoding_of, indent_of
from agentctx.errors import EditFormatError
from agentctx.spans import ByteSpan

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class EditTarget:
    """A definition in a Python file.

    `span` covers it with its decorators; `source` is the whole file; `header` is the text from the start of the line
    that holds `def` or `class` up to and including the colon.
    """

    path: str
    span: ByteSpan
    name: str
    qualname: str
    indent: str
    source: bytes
    header: bytes

    @property
    def text(self) -> bytes:
        return self.source[self.span.start : self.span.end]

    @property
    def header_text(self) -> str:
        return self.header.decode(encoding_of(self.source)).replace("\r\n", "\n")


def make_target(path: str, source: bytes, span: ByteSpan, qualname: str) -> EditTarget:
    """The target that `span` (decorators included) covers in `source`.

    Raises:
        EditFormatError: there is no function or class definition there.
    """
    start = source.rfind(b"\n", 0, span.start) + 1
    encoding = encoding_of(source)
    lead = source[start : span.start].decode(encoding)
    text = (lead + source[span.start : span.end].decode(encoding)).replace("\r\n", "\n")
    name = qualname.rpartition(".")[2]
    node, lines = _parse_definition(text, path, qualname)
    indent = indent_of(text)
    first = node.lineno - 1
    header = "\n".join(lines[first:]).encode(encoding)[: _header_bytes(node, lines, encoding)]
    if b"\r\n" in source[span.start : span.end]:
        header = header.replace(b"\n", b"\r\n")
    return EditTarget(path, span, name, qualname, indent, source, header)


def _parse_definition(text: str, path: str, qualname: str) -> tuple[Definition, list[str]]:
    lines = text.split("\n")
    wrapped = f"if 1:\n{text}\n" if indent_of(text) else text + "\n"
    try:
        body = ast.parse(wrapped).body
    except SyntaxError as error:
        raise EditFormatError(f"{path}: {qualname} doesn't parse as Python: {error.msg}") from error
    if indent_of(text):
        assert isinstance(body[0], ast.If)
        body = body[0].body
        lines = ["if 1:", *lines]
    if not body or not isinstance(body[0], Definition):
        raise EditFormatError(f"{path}: {qualname} is not a function or a class", hint="use the search-replace format")
    return body[0], lines


def _header_bytes(node: Definition, lines: list[str], encoding: str) -> int:
    """Length of the header, counted from the start of the line of `def`: up to the colon before the body."""
    first, body = node.lineno - 1, node.body[0]
    line, column = first_line(body), body.col_offset
    if line != body.lineno:  # a decorated definition starts at its first decorator
        column = 0
    before = [*lines[first : line - 1], lines[line - 1].encode()[:column].decode()]
    code = "\n".join(before)
    return len(code[: header_colon(code) + 1].encode(encoding))


def first_line(node: ast.stmt) -> int:
    """The line (1-based) where a statement starts, decorators included."""
    if isinstance(node, Definition) and node.decorator_list:
        return min(node.lineno, node.decorator_list[0].lineno)
    return node.lineno


def header_colon(code: str) -> int:
    """Index of the colon that ends the first logical line's header: the first one outside brackets and strings."""
    import io
    import tokenize

    offsets = [0]
    for line in code.split("\n"):
        offsets.append(offsets[-1] + len(line) + 1)
    depth = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(code.lstrip(" \t") + "\n").readline):
            if token.type == tokenize.OP and token.string in "([{":
                depth += 1
            elif token.type == tokenize.OP and token.string in ")]}":
                depth -= 1
            elif token.type == tokenize.OP and token.string == ":" and not depth:
                shift = len(code) - len(code.lstrip(" \t")) if token.start[0] == 1 else 0
                return offsets[token.start[0] - 1] + token.start[1] + shift
    except (tokenize.TokenError, IndentationError):
        pass
    return -1
