"""What holds for the units of every file: they tile it, spines are closed, kept code parses."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from agentctx.repo import languages
from agentctx.repo.trees import count_errors
from agentctx.source import FileSyntax, SourceFile, Unit
from agentctx.spans import tiles


def source(path: str, data: bytes | str) -> SourceFile:
    raw = data.encode() if isinstance(data, str) else data
    digest = hashlib.sha256(raw).hexdigest()
    return SourceFile(path, raw, digest, languages.language_of(path), languages.is_test_path(path))


def closure(syntax: FileSyntax, chosen: Iterable[int]) -> frozenset[int]:
    return frozenset(unit for index in chosen for unit in (index, *syntax.units[index].spine))


def n_errors(data: bytes, language: str) -> int:
    return count_errors(data, language)


def check_units(file: SourceFile, syntax: FileSyntax) -> None:
    units = syntax.units
    assert tiles([unit.span for unit in units], len(file.data))
    assert [unit.index for unit in units] == list(range(len(units)))
    line = 1
    for unit in units:
        assert unit.lines.start == line
        text = file.data[unit.span.start : unit.span.end]
        assert text, "an empty unit"
        assert unit is units[-1] or text.endswith(b"\n")
        line += text.count(b"\n")
        assert unit.lines.end == line - 1 + (not text.endswith(b"\n"))
        line = unit.lines.end + 1
        assert unit.index not in unit.spine
        assert list(unit.spine) == sorted(set(unit.spine))
        for other in unit.spine:
            assert set(units[other].spine) <= {*unit.spine, unit.index}
    ids = [symbol.id for symbol in syntax.symbols]
    assert len(ids) == len(set(ids))
    assert {unit.symbol for unit in units} <= {None, *ids}
    for symbol in syntax.symbols:
        assert units[symbol.header].span.start <= symbol.name_span.start < units[symbol.header].span.end
        assert symbol.parent is None or symbol.parent in ids
    for reference in syntax.references:
        span = units[reference.unit].span
        assert span.start <= reference.span.start < reference.span.end <= span.end
        assert file.data[reference.span.start : reference.span.end].decode("utf-8", "replace") == reference.name


def check_kept(file: SourceFile, syntax: FileSyntax, chosen: Iterable[int]) -> None:
    """What is kept has no syntax error unless the whole file has one."""
    if syntax.language is None or syntax.n_errors:
        return
    kept = closure(syntax, chosen)
    text = render_kept(file.data, syntax.units, kept, languages.comment_of(file.path))
    assert n_errors(text, syntax.language) == 0, text.decode("utf-8", "replace")


def render_kept(data: bytes, units: Sequence[Unit], kept: frozenset[int], comment: tuple[str, str]) -> bytes:
    """The kept units, with a comment in place of each run of dropped ones.

    The comment stands at the indentation of the first dropped line, on a line of its own.
    """
    opener, closer = comment
    out: list[bytes] = []
    run: list[Unit] = []
    for unit in units:
        if unit.index not in kept:
            run.append(unit)
            continue
        if run:
            out.append(_elision(data, run, opener, closer))
            run = []
        out.append(data[unit.span.start : unit.span.end])
    if run:
        out.append(_elision(data, run, opener, closer))
    return b"".join(out)


def _elision(data: bytes, run: Sequence[Unit], opener: str, closer: str) -> bytes:
    first = data[run[0].span.start : run[0].span.end].lstrip(b"\r\n\f")
    indent = first[: len(first) - len(first.lstrip(b" \t"))]
    n_lines = run[-1].lines.end - run[0].lines.start + 1
    ending = b"\r\n" if first.split(b"\n", 1)[0].endswith(b"\r") else b"\n"
    return indent + f"{opener} ... {n_lines} lines {closer}".rstrip().encode() + ending
