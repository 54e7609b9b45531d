"""Code out of a model's answer: fenced blocks, or raw code between prose. Pure."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentctx.edit.target import Definition
from agentctx.edit.text import indent_of

_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<ticks>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$")
_STARTS = re.compile(r"^[ \t]*(async[ \t]+def|def|class|@|import|from)\b|^[ \t]*@")
_PLACEHOLDER = re.compile(
    r"^\s*(#|//|--|<!--|/\*)?\s*(\.{3}|…)?.*\b"
    r"(rest of|left out|existing code|remaining code|code (remains|stays)|unchanged|same as before|omitted)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Code:
    """Python that parses: the dedented lines and their tree. `n_ignored` lines after it are no code."""

    lines: tuple[str, ...]
    tree: ast.Module
    n_ignored: int


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    line: int  # 1-based
    message: str


def fenced_blocks(text: str) -> list[tuple[str, str]]:
    """(info string, content) of each fenced block; the last one may lack its closing fence."""
    blocks: list[tuple[str, str]] = []
    opened: re.Match[str] | None = None
    content: list[str] = []
    for line in text.split("\n"):
        match = _FENCE.match(line.rstrip("\r"))
        if opened is None and match:
            opened, content = match, []
        elif opened is not None and match and match["ticks"].startswith(opened["ticks"]) and not match["info"].strip():
            blocks.append((opened["info"].strip(), "\n".join(content)))
            opened = None
        elif opened is not None:
            content.append(line.rstrip("\r"))
    if opened is not None:
        blocks.append((opened["info"].strip(), "\n".join(content)))
    return blocks


def python_codes(text: str) -> Iterator[Code | SyntaxProblem]:
    """Every piece of `text` that could be Python: the fenced blocks, or else the raw text from its first definition."""
    blocks = fenced_blocks(text)
    if blocks:
        for _, content in blocks:
            yield _parsed(content.split("\n"))
        return
    lines = [line.rstrip("\r") for line in text.split("\n")]
    first = next((number for number, line in enumerate(lines) if _STARTS.match(line)), None)
    if first is not None:
        yield _parsed(lines[first:])


def _parsed(lines: Sequence[str]) -> Code | SyntaxProblem:
    """The longest prefix of `lines` that parses and that ends before a line at column 0.

    An answer may end in prose or in a second, unfinished definition; a definition is never cut in the middle.
    """
    code = _dedent("\n".join(lines).strip("\n").split("\n"))
    first_problem: SyntaxProblem | None = None
    end = len(code)
    while end:
        tree = try_parse("\n".join(code[:end]) + "\n")
        if isinstance(tree, ast.Module):
            return Code(tuple(code[:end]), tree, sum(1 for line in code[end:] if line.strip()))
        first_problem = first_problem or tree
        end = max(0, min(end - 1, tree.line - 1))
        while end and (not code[end].strip() or indent_of(code[end])):
            end -= 1
    return first_problem or SyntaxProblem(1, "no code")


def _dedent(lines: Sequence[str]) -> list[str]:
    """`lines` without the first line's indentation (a line that stands left of it stays)."""
    indent = indent_of(lines[0])
    return [line.removeprefix(indent) for line in lines]


def try_parse(code: str) -> ast.Module | SyntaxProblem:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)  # invalid escapes before Python 3.12
        try:
            return ast.parse(code)
        except SyntaxError as error:
            return SyntaxProblem(error.lineno or 1, error.msg)
        except (ValueError, RecursionError, MemoryError) as error:  # NUL bytes; absurdly nested code
            return SyntaxProblem(1, str(error) or type(error).__name__)


def definitions(body: Sequence[ast.stmt], name: str) -> list[Definition]:
    """Definitions called `name` in `body`, in order; those inside its classes where there is none at the top."""
    found = [node for node in body if isinstance(node, Definition) and node.name == name]
    if found:
        return found
    classes = [node for node in body if isinstance(node, ast.ClassDef)]
    return [inner for node in classes for inner in definitions(node.body, name)]


def placeholder(new: Sequence[str], old: str) -> str | None:
    """The first line of `new` that stands for left-out code ("# ... rest of the function ...") and isn't in `old`."""
    for line in new:
        text = line.strip()
        if text.startswith(("#", "//", "...", "…", "/*", "<!--")) and _PLACEHOLDER.match(line) and text not in old:
            return text
    return None
