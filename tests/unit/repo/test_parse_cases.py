"""Golden units, symbols and references: tests/cases/units/*.md.

`options: show=units, symbols, references, imports` says what the case is about; `endings=crlf` and `bom` change
the file before it is parsed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agentctx.repo.parse import parse
from agentctx.source import FileSyntax, SourceFile
from tests.casefile import Case, case_paths, read_case
from tests.unit_checks import check_kept, check_units, source


def show_units(file: SourceFile, syntax: FileSyntax) -> list[str]:
    lines = []
    for unit in syntax.units:
        spine = ",".join(map(str, unit.spine)) or "-"
        symbol = unit.symbol.removeprefix(file.path + "::") if unit.symbol else "-"
        lines.append(f"{unit.index} {unit.kind} {symbol} spine {spine}")
        text = file.data[unit.span.start : unit.span.end].decode().splitlines()
        lines += [f"  |{line}" for line in text]
    return lines


def show_symbols(file: SourceFile, syntax: FileSyntax) -> list[str]:
    lines = []
    for s in syntax.symbols:
        flags = "".join([" test" * s.is_test, " fixture" * s.is_fixture])
        lines.append(f"{s.kind} {s.id.removeprefix(file.path + '::')} in unit {s.header}{flags}: {s.signature}")
        if s.bases or s.decorators:
            lines.append(f"  bases {' '.join(s.bases) or '-'}; decorators {' '.join(s.decorators) or '-'}")
    return lines


def show_definitions(file: SourceFile, syntax: FileSyntax) -> list[str]:
    """Symbols with what languages other than Python say of them: form, type, and what they belong to."""
    lines = []
    for s in syntax.symbols:
        flags = "".join([" test" * s.is_test, " fixture" * s.is_fixture])
        form = f" ({s.form})" if s.form else ""
        type_ = f" -> {s.type}" if s.type else ""
        lines.append(
            f"{s.kind}{form} {s.id.removeprefix(file.path + '::')} in unit {s.header}{flags}{type_}: {s.signature}"
        )
        parent = s.parent.removeprefix(file.path + "::") if s.parent else "-"
        if s.bases or s.decorators or (parent != s.qualname.rpartition(".")[0] and parent != "-"):
            lines.append(f"  of {parent}; bases {' '.join(s.bases) or '-'}; decorators {' '.join(s.decorators) or '-'}")
    return [*lines, f"package {syntax.package}"] if syntax.package else lines


def show_references(file: SourceFile, syntax: FileSyntax) -> list[str]:
    lines = []
    for r in syntax.references:
        scope = r.scope.removeprefix(file.path + "::") if r.scope else "-"
        name = f"{r.receiver}.{r.name}" if r.receiver is not None else r.name
        type_ = f" ({r.receiver}: {r.receiver_type})" if r.receiver_type else ""
        lines.append(f"{r.line} {r.role} {name}{type_} in {scope}")
    return lines


def show_imports(file: SourceFile, syntax: FileSyntax) -> list[str]:
    lines = []
    for i in syntax.imports:
        scope = i.scope.removeprefix(file.path + "::") if i.scope else "-"
        where = "." * i.level + i.module
        lines.append(f"{i.line} {where}: {i.name or '(module)'} as {i.alias or '-'} in {scope}, unit {i.unit}")
    return [*lines, f"exports: {' '.join(syntax.exports) or '-'}"]


def show_variables(file: SourceFile, syntax: FileSyntax) -> list[str]:
    """Uses of variables that other units of their function bind, with those units' first lines."""
    lines = [f"{file.path}:"]
    for use in syntax.locals:
        bound = ", ".join(str(syntax.units[unit].lines.start) for unit in use.bound)
        lines.append(f"  {use.line} {use.name} in unit of {syntax.units[use.unit].lines.start}: bound from {bound}")
    return lines


SHOWS = {
    "units": show_units,
    "symbols": show_symbols,
    "definitions": show_definitions,
    "references": show_references,
    "imports": show_imports,
    "variables": show_variables,
}


def bytes_of(case: Case, text: str) -> bytes:
    data = text.encode()
    if case.options.get("endings") == "crlf":
        data = data.replace(b"\n", b"\r\n")
    return b"\xef\xbb\xbf" + data if "bom" in case.options else data


@pytest.mark.parametrize("path", case_paths("units"), ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    case = read_case(path)
    out: list[str] = []
    for name, text in case.files.items():
        file = source(name, bytes_of(case, text))
        syntax = parse(file)
        check_units(file, syntax)
        for index in range(len(syntax.units)):
            check_kept(file, syntax, [index])
        check_kept(file, syntax, [])
        for show in case.options["show"].split(","):
            out += SHOWS[show.strip()](file, syntax)
        if syntax.n_errors:
            out.append(f"errors: {syntax.n_errors}")
    case.check("\n".join(out))
