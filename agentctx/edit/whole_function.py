"""The `function` format: a whole Python definition that replaces the target's. Pure.

The format that small models manage. What else the answer holds is treated so:
- leading imports are added to the file where that is safe (see `edit.imports`), and said in a note in any case;
- helpers and other definitions are left out and named in a note;
- decorators: the target's stay where the answer has none.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from agentctx.edit.answer import Code, SyntaxProblem, definitions, placeholder, python_codes
from agentctx.edit.apply import digest
from agentctx.edit.imports import import_hunks
from agentctx.edit.matching import replace_lines
from agentctx.edit.reindent import Place, rebase, string_lines
from agentctx.edit.target import Definition, EditTarget, first_line, header_colon
from agentctx.edit.text import FileText, indent_of
from agentctx.errors import EditFormatError
from agentctx.prompt import EditPatch, FileEdit, Hunk


@dataclass(frozen=True, slots=True)
class _Answer:
    code: Code
    node: Definition
    lines: tuple[str, ...]  # decorators (if any) to the end, at column 0
    inside: frozenset[int]  # numbers of the lines that start inside a string
    header_lines: int


def answer_prefix(target: EditTarget) -> str:
    """What the assistant's turn starts with, so that the model can only write the body."""
    return f"```python\n{target.header_text}"


class WholeFunction:
    """`EditFormat` for one target."""

    name = "function"

    def parse(self, text: str, target: EditTarget | None, read: Callable[[str], bytes]) -> EditPatch:
        if target is None:
            raise EditFormatError("the function format needs a target", hint="name one with --focus PATH#SYMBOL")
        answer, notes = _find(text, target)
        file = FileText.read(target.path, target.source)
        hunks = _definition_hunks(file, target, answer)
        if not hunks:
            raise EditFormatError(f"the answer repeats {target.qualname} without a change")
        added, said = import_hunks(file, answer.code.tree.body, answer.node)
        edit = FileEdit(target.path, digest(target.source), tuple(sorted((*added, *hunks), key=lambda h: h.span)))
        return EditPatch((edit,), (*notes, *said))


def _find(text: str, target: EditTarget) -> tuple[_Answer, tuple[str, ...]]:
    problems = []
    for attempt in _attempts(text, target):
        for code in python_codes(attempt):
            if isinstance(code, SyntaxProblem):
                problems.append(f"line {code.line} of its code: {code.message}")
                continue
            found = definitions(code.tree.body, target.name)
            if found:
                return _cut(code, found[-1]), _notes(code, found, target)
    why = f" ({problems[0]})" if problems else ""
    raise EditFormatError(f"the answer holds no definition of {target.name} that parses{why}")


def _attempts(text: str, target: EditTarget) -> Iterator[str]:
    """The answer as it is, or as the continuation of the prefix that we forced."""
    yield text
    prefix = answer_prefix(target)
    yield prefix + text
    body = text.lstrip("\n")
    if not text.startswith("\n") and indent_of(body):
        yield f"{prefix}\n{body}"


def _cut(code: Code, node: Definition) -> _Answer:
    first = first_line(node) - 1
    end = node.end_lineno or node.lineno
    inside = frozenset(number - first for number in string_lines(code.lines) if first <= number < end)
    indent = indent_of(code.lines[first])
    cut = enumerate(code.lines[first:end])
    lines = tuple(line if number in inside else line.removeprefix(indent) for number, line in cut)
    n_decorators = node.lineno - 1 - first
    signature = "\n".join(lines[n_decorators:])
    n_signature = signature[: header_colon(signature) + 1].count("\n") + 1
    return _Answer(code, node, lines, inside, n_decorators + n_signature)


def _notes(code: Code, found: Sequence[Definition], target: EditTarget) -> tuple[str, ...]:
    notes = []
    if len(found) > 1:
        notes.append(f"the answer defines {target.name} {len(found)} times; the last one was taken")
    others = _others(code.tree.body, found[-1])
    if others:
        names = ", ".join(dict.fromkeys(others))
        notes.append(f"left out of the answer: {names} (only {target.qualname} is replaced)")
    if code.n_ignored:
        notes.append(f"{code.n_ignored} lines after the code were ignored")
    return tuple(notes)


def _others(body: Sequence[ast.stmt], taken: Definition) -> list[str]:
    """Names of the definitions beside `taken`; where it stands in a class, those of the class's other members."""
    names = []
    for node in body:
        if isinstance(node, ast.ClassDef) and taken in ast.walk(node) and node is not taken:
            names += [f"{node.name}.{name}" for name in _others(node.body, taken)]
        elif isinstance(node, Definition) and node is not taken and node.name != taken.name:
            names.append(node.name)
    return names


def _definition_hunks(file: FileText, target: EditTarget, answer: _Answer) -> list[Hunk]:
    old = FileText.read(target.path, target.source[: target.span.end].rstrip()).lines
    first = _line_at(file, target.span.start)
    end = len(old)
    if not answer.node.decorator_list:
        first = _def_line(file, target, first, end)
    replaced = list(file.lines[first:end])
    place = Place(target.indent, _body_indent(replaced, target), frozenset(file.lines[first:end]))
    new = rebase(answer.lines, answer.inside, answer.header_lines, place)
    for number in range(min(answer.header_lines, len(replaced))):
        new[number] = _with_comment(new[number], replaced[number])
    gap = placeholder(new, "\n".join(replaced))
    if gap:
        raise EditFormatError(f"the answer leaves code out: {gap!r}", hint="ask for the whole definition")
    if file.span(first, end).end > target.span.end and file.data[target.span.end : file.starts[end]].strip():
        raise EditFormatError(f"{target.path}: other code follows {target.qualname} on its last line")
    hunks = []
    for tag, a, b, c, d in SequenceMatcher(None, replaced, new, autojunk=False).get_opcodes():
        if tag != "equal":
            hunks.append(replace_lines(file, first + a, first + b, new[c:d]))
    return hunks


def _with_comment(new: str, old: str) -> str:
    """A line of the header with the comment that the file has behind it."""
    return old if old.startswith(new) and old[len(new) :].lstrip().startswith("#") else new


def _line_at(file: FileText, byte: int) -> int:
    return next(number for number in range(len(file.lines)) if file.starts[number + 1] > byte)


def _def_line(file: FileText, target: EditTarget, first: int, end: int) -> int:
    """The line (0-based) of `def` or `class`, which comes after the decorators."""
    header = target.header_text.split("\n")[0]
    return next(number for number in range(first, end) if file.lines[number].startswith(header))


def _body_indent(lines: Sequence[str], target: EditTarget) -> str:
    """The indentation of the target's body; of a one-liner: one step deeper, by the file's own kind of step."""
    header = target.header_text.split("\n")
    start = next(number for number, line in enumerate(lines) if line.startswith(header[0]))
    body = [indent_of(line) for line in lines[start + len(header) :] if line.strip()]
    deeper = [indent for indent in body if indent.startswith(target.indent) and len(indent) > len(target.indent)]
    return deeper[0] if deeper else target.indent + ("\t" if "\t" in target.indent else "    ")
