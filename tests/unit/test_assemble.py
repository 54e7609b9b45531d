"""Blocks -> a prompt's text and units, and a prompt cut down to what was kept."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctx.assemble import Assembled, Block, Gap, Piece, assemble, elision_line, file_line, indentation, restrict
from agentctx.prompt import PromptDocument, PromptFile, Section
from agentctx.repo.parse import parse
from agentctx.source import FileSyntax, UnitKind
from agentctx.spans import LineSpan, tiles
from tests.trees import ROOT
from tests.unit_checks import n_errors, source

HASH, HTML = ("#", ""), ("<!--", "-->")
_LEFT_OUT = re.compile(rb"^\s*# \.\.\. (\d+) lines? left out \.\.\.$", re.MULTILINE)


def file(path: str = "a.py", n_lines: int = 9, comment: tuple[str, str] = HASH) -> PromptFile:
    return PromptFile(path, comment, n_lines, "python")


def code(number: int, text: bytes, first: int, *, spine: Iterable[int] = (), path: str = "a.py") -> Piece:
    lines = LineSpan(first, first + max(0, len(text.splitlines()) - 1))
    return Piece((path, number), UnitKind.BODY, text, lines, None, tuple((path, other) for other in spine))


def document(made: Assembled, *files: PromptFile) -> PromptDocument:
    return PromptDocument(made.text, made.units, {file.path: file for file in files})


# ---------------------------------------------------------------- lines that stand for something


def test_the_line_that_names_a_file() -> None:
    assert file_line(file("p/größe.py")) == "# p/größe.py\n".encode()
    assert file_line(file("a.md", comment=HTML)) == b"<!-- a.md -->\n"
    assert file_line(file("caf\udce9.py")) == b"# caf\xe9.py\n"


def test_the_line_that_stands_for_left_out_lines() -> None:
    assert elision_line(file(), Gap(1, b"")) == b"# ... 1 line left out ...\n"
    assert elision_line(file(), Gap(12, b"\t  ")) == b"\t  # ... 12 lines left out ...\n"
    assert elision_line(file(comment=HTML), Gap(2, b"")) == b"<!-- ... 2 lines left out ... -->\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", b""),
        (b"\n\n", b""),
        (b"x", b""),
        (b"\n \t\n\t  x\n y", b"\t  "),
        (b" \f x", b"  "),
        (b"\r\n  x\r\n", b"  "),
    ],
)
def test_indentation_is_that_of_the_first_line_with_text(text: bytes, expected: bytes) -> None:
    assert indentation(text) == expected


# ---------------------------------------------------------------- assemble


def test_the_parts_of_a_file() -> None:
    pieces = (code(0, b"import os\n", 1), code(2, b"  y\n", 5, spine=[0]))
    made = assemble([Block(Section.CODE, pieces, file(), (None, Gap(3, b"  "), Gap(4, b"")))])
    assert made.text == (
        b"# a.py\nimport os\n  # ... 3 lines left out ...\n  y\n# ... 4 lines left out ...\n"
    )  # fmt: skip
    assert [unit.kind.value for unit in made.units] == ["file", "body", "elision", "body", "elision"]
    assert [unit.spine for unit in made.units] == [(), (0,), (0,), (0, 1, 2, 4), (0,)]
    assert made.index == {("a.py", 0): 1, ("a.py", 2): 3}
    assert tiles([unit.span for unit in made.units], len(made.text))


def test_spines_are_closed_over_blocks_and_absent_keys_are_left_out() -> None:
    first = Block(Section.CODE, (code(0, b"a\n", 1), code(1, b"b\n", 2, spine=[0]), code(2, b"c\n", 3, spine=[1, 7])))
    second = Block(Section.TESTS, (Piece(("t", 0), UnitKind.BODY, b"t\n", spine=(("a.py", 2), ("gone", 0))),))
    made = assemble([first, second])
    assert [unit.spine for unit in made.units] == [(), (0,), (0, 1), (0, 1, 2)]


def test_a_circle_of_spines_ends() -> None:
    made = assemble([Block(Section.CODE, (code(0, b"a\n", 1, spine=[1]), code(1, b"b\n", 2, spine=[0])))])
    assert [unit.spine for unit in made.units] == [(1,), (0,)]


def test_code_without_a_final_newline_gets_one_and_other_text_does_not() -> None:
    made = assemble([
        Block(Section.CODE, (code(0, b"a", 1),), file()),
        Block(Section.CODE, (code(0, b"a\r", 1, path="b.py"), code(1, b"b\r", 2, path="b.py")), file("b.py")),
        Block(Section.TAIL, (Piece(("tail", 0), UnitKind.SCAFFOLD, b"<|end|>"),)),
    ])  # fmt: skip
    assert made.text == b"# a.py\na\n# b.py\na\rb\r\n<|end|>"


def test_an_empty_block_is_nothing() -> None:
    made = assemble([Block(Section.CODE, (), file()), Block(Section.LOG, ())])
    assert (made.text, made.units) == (b"", ())


# ---------------------------------------------------------------- restrict


def whole(path: str, data: bytes, left_out: Iterable[int] = ()) -> tuple[PromptDocument, FileSyntax]:
    """A file packed but for some of its units, between a system prompt and a request."""
    syntax = parse(source(path, data))
    hidden = set(left_out)
    shown = [unit for unit in syntax.units if unit.index not in hidden]
    gaps: list[Gap | None] = []
    following = 0
    for number in [unit.index for unit in shown] + [len(syntax.units)]:
        missing = syntax.units[following:number]
        start = missing[0].span.start if missing else 0
        lines = sum(len(unit.lines) for unit in missing)
        gaps.append(Gap(lines, indentation(data[start : missing[-1].span.end])) if missing else None)
        following = number + 1
    named = PromptFile(path, HASH, syntax.units[-1].lines.end, "python")
    pieces = []
    for unit in shown:
        text, spine = data[unit.span.start : unit.span.end], tuple((path, other) for other in unit.spine)
        pieces.append(Piece((path, unit.index), unit.kind, text, unit.lines, unit.symbol, spine))
    made = assemble([
        Block(Section.SYSTEM, (Piece(("s", 0), UnitKind.SCAFFOLD, b"system\n"),)),
        Block(Section.CODE, tuple(pieces), named, tuple(gaps)),
        Block(Section.REQUEST, (Piece(("r", 0), UnitKind.REQUEST, b"request\n"),)),
    ])  # fmt: skip
    return document(made, named), syntax


def closed(doc: PromptDocument, units: Iterable[int]) -> set[int]:
    return {other for unit in units for other in (unit, *doc.units[unit].spine)}


def code_of(doc: PromptDocument) -> bytes:
    """The text of the file's section, without the line that names it."""
    parts = [doc.unit_text(u.index) for u in doc.units if u.section is Section.CODE and u.kind is not UnitKind.FILE]
    return b"".join(parts)


def count_lines(text: bytes) -> int:
    """Lines of the file that the text shows or counts."""
    left_out = [int(n) for n in _LEFT_OUT.findall(text)]
    return len(text.split(b"\n")) - 1 - len(left_out) + sum(left_out)


REAL = ["agentctx/assemble.py", "agentctx/repo/parse_units.py", "agentctx/spec/select.py", "agentctx/cli/doctor.py"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_kept_code_parses_and_its_lines_add_up(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(REAL))
    raw = (ROOT / path).read_bytes()
    n_units = len(parse(source(path, raw)).units)
    some = st.sets(st.integers(0, n_units - 1))
    syntax = parse(source(path, raw))
    shown = {u for unit in data.draw(some) for u in (unit, *syntax.units[unit].spine)}
    doc, _ = whole(path, raw, set(range(n_units)) - shown)
    inside = [u.index for u in doc.units if u.kind not in (UnitKind.FILE, UnitKind.ELISION)]
    kept = closed(doc, data.draw(st.sets(st.sampled_from(inside))))
    cut, moved = restrict(doc, kept)
    text = code_of(cut)
    assert n_errors(text, "python") == 0
    if text:
        assert count_lines(text) == doc.files[path].n_lines
    for old, new in moved.items():
        assert cut.unit_text(new) == doc.unit_text(old)
        assert (cut.units[new].lines, cut.units[new].kind) == (doc.units[old].lines, doc.units[old].kind)
    order = [moved[unit] for unit in sorted(moved)]
    assert order == sorted(order)
    for one, other in pairwise(cut.units):
        assert not (one.kind is UnitKind.ELISION and other.kind is UnitKind.ELISION)


def test_keeping_everything_changes_nothing() -> None:
    raw = (ROOT / REAL[0]).read_bytes()
    doc, _ = whole(REAL[0], raw)
    cut, moved = restrict(doc, range(len(doc.units)))
    assert cut.text == doc.text
    assert all(old == new for old, new in moved.items())


def test_restricting_twice_is_restricting_once() -> None:
    doc, _ = whole(REAL[1], (ROOT / REAL[1]).read_bytes(), [3, 4, 9])
    kept = closed(doc, [unit.index for unit in doc.units if unit.index % 3 == 0])
    cut, _ = restrict(doc, kept)
    again, _ = restrict(cut, range(len(cut.units)))
    assert again.text == cut.text


SMALL = b'''import os

def f(a):
    """Doc."""
    for y in range(a):
        print(y)
        print(y)

    z = [x for x in range(9)]
    return z

def g():
    """Doc."""
    while a:
        a -= 1
        b -= 1

    return f(1)'''


def unit_with(doc: PromptDocument, text: bytes) -> int:
    return next(unit.index for unit in doc.units if text in doc.unit_text(unit.index))


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_what_is_between_is_counted_once(ending: bytes) -> None:
    doc, _ = whole("a.py", SMALL.replace(b"\n", ending))
    cut, _ = restrict(doc, closed(doc, [unit_with(doc, b"return z"), unit_with(doc, b"return f(1)")]))
    assert [line.decode() for line in cut.text.splitlines()] == [
        "# a.py",
        "# ... 2 lines left out ...",
        "def f(a):",
        '    """Doc."""',
        "    # ... 4 lines left out ...",
        "    z = [x for x in range(9)]",
        "    return z",
        "",
        "def g():",
        '    """Doc."""',
        "    # ... 4 lines left out ...",
        "    return f(1)",
    ]
    assert cut.text.endswith(b"return f(1)\n")
    assert cut.text.count(b"\r\n") == (7 if ending == b"\r\n" else 0)


def test_gaps_take_the_indentation_of_what_they_hide() -> None:
    doc, _ = whole("a.py", SMALL)
    cut, _ = restrict(doc, closed(doc, [unit_with(doc, b"def g")]))
    assert cut.text == (
        b'# a.py\n# ... 11 lines left out ...\ndef g():\n    """Doc."""\n    # ... 5 lines left out ...\n'
    )


def test_lines_that_the_window_left_out_are_counted_too() -> None:
    doc, syntax = whole("a.py", SMALL, [2, 3, 6])
    assert [syntax.units[unit].lines for unit in (2, 3, 6)] == [LineSpan(5, 8), LineSpan(9, 11), LineSpan(18, 18)]
    cut, _ = restrict(doc, closed(doc, [unit_with(doc, b"while a")]))
    assert cut.text == (
        b"# a.py\n# ... 11 lines left out ...\n"
        b'def g():\n    """Doc."""\n    while a:\n        a -= 1\n        b -= 1\n\n'
        b"    # ... 1 line left out ...\n"
    )


def test_a_file_of_which_nothing_is_kept_is_not_named() -> None:
    doc, _ = whole("a.py", SMALL)
    request = next(unit.index for unit in doc.units if unit.kind is UnitKind.REQUEST)
    assert restrict(doc, [0, request])[0].text == b"system\nrequest\n"
    assert restrict(doc, [])[0].text == b""
