"""What must hold for every file, however broken: it parses, its units tile it, and kept code has no new errors.

Files are real ones and mutations of them. Of each, random units are kept (with their spines), the rest is left out
as in a prompt, and the syntax errors of both are counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import process_time

from agentctx.assemble import Gap, elision_line, indentation
from agentctx.bench.fuzz.mutate import mutated
from agentctx.prompt import PromptFile
from agentctx.repo import languages
from agentctx.repo.parse import parse
from agentctx.repo.trees import TooHard, count_errors
from agentctx.source import FileSyntax, SourceFile
from agentctx.spans import tiles

MAX_BYTES = 60_000  # larger files take the time of many small ones and hold nothing else
SHARES = (0.0, 0.05, 0.25, 0.6)  # of the units that are kept


@dataclass(frozen=True, slots=True)
class Failure:
    """`kind`: crash, units (they don't tile, or a spine is open) or errors (kept code has more than the whole)."""

    kind: str
    language: str
    path: str
    seed: int
    detail: str
    whole: bool  # whether the file had no syntax error before


@dataclass(slots=True)
class FuzzResult:
    n_files: int = 0
    n_whole: int = 0  # files without syntax errors
    n_plain: int = 0  # files that their grammar couldn't be used on
    n_kept: int = 0  # kept texts that were parsed
    seconds: float = 0.0  # CPU time of parsing the files
    n_bytes: int = 0
    failures: list[Failure] = field(default_factory=list)
    by_language: dict[str, int] = field(default_factory=dict)


def corpus(folders: Sequence[Path]) -> dict[str, list[Path]]:
    """Language -> files of it below the folders, sorted."""
    found: dict[str, list[Path]] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            language = languages.language_of(path.name)
            if language is not None and path.is_file() and not path.is_symlink() and path.stat().st_size <= MAX_BYTES:
                found.setdefault(language, []).append(path)
    return dict(sorted(found.items()))


def fuzz(files: dict[str, list[Path]], n_files: int, seed: int) -> FuzzResult:
    """Checks `n_files` files, as many of each language; one in eight is not mutated."""
    result = FuzzResult()
    for number in range(n_files if files else 0):
        language = list(files)[number % len(files)]
        random = Random(f"{seed}:{number}")
        path = random.choice(files[language])
        data = path.read_bytes()
        if random.random() >= 1 / 8:
            data = mutated(data, random)
        result.failures += _checked(_source(path, data, language), random, number, result)
    return result


def _source(path: Path, data: bytes, language: str) -> SourceFile:
    name = path.name
    return SourceFile(name, data, hashlib.sha256(data).hexdigest(), language, languages.is_test_path(name))


def _checked(file: SourceFile, random: Random, seed: int, result: FuzzResult) -> Iterator[Failure]:
    language = file.language or ""
    result.n_files += 1
    result.n_bytes += len(file.data)
    result.by_language[language] = result.by_language.get(language, 0) + 1
    start = process_time()
    try:
        syntax = parse(file)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
        yield Failure("crash", language, file.path, seed, f"{type(error).__name__}: {error}", whole=False)
        return
    result.seconds += process_time() - start
    result.n_whole += not syntax.n_errors
    wrong = wrong_units(file, syntax)
    if wrong:
        yield Failure("units", language, file.path, seed, wrong, whole=not syntax.n_errors)
        return
    yield from _more_errors(file, syntax, random, seed, result)


def _more_errors(
    file: SourceFile, syntax: FileSyntax, random: Random, seed: int, result: FuzzResult
) -> Iterator[Failure]:
    if syntax.language is None:
        result.n_plain += 1
        return
    for share in SHARES:
        kept = closed(syntax, [unit.index for unit in syntax.units if random.random() < share])
        found = n_errors(kept_text(file, syntax, kept), syntax.language)
        result.n_kept += 1
        if found > syntax.n_errors:
            detail = f"{found} > {syntax.n_errors} of {len(kept)}/{len(syntax.units)} units"
            yield Failure("errors", syntax.language, file.path, seed, detail, whole=not syntax.n_errors)
            return


def n_errors(text: bytes, language: str) -> int:
    """ERROR and MISSING nodes; more than any file has where the grammar can't be used on the text."""
    try:
        return count_errors(text, language)
    except TooHard:
        return len(text)


def wrong_units(file: SourceFile, syntax: FileSyntax) -> str:
    """What is wrong with the units and where symbols say that they stand; '' if nothing is."""
    units = syntax.units
    if not tiles([unit.span for unit in units], len(file.data)):
        return "the units don't tile the file"
    for unit in units:
        if unit.index in unit.spine or list(unit.spine) != sorted(set(unit.spine)):
            return f"the spine of unit {unit.index} is not sorted, or holds it"
        if any(not {*units[other].spine} <= {*unit.spine, unit.index} for other in unit.spine):
            return f"the spine of unit {unit.index} is not closed"
    ids = {symbol.id for symbol in syntax.symbols}
    if len(ids) != len(syntax.symbols) or not {unit.symbol for unit in units} <= {None, *ids}:
        return "ids of symbols repeat, or units belong to unknown ones"
    for symbol in syntax.symbols:
        header = units[symbol.header].span
        if not header.start <= symbol.name_span.start < header.end:
            return f"{symbol.id} is not named in its header"
    return ""


def closed(syntax: FileSyntax, chosen: Sequence[int]) -> frozenset[int]:
    return frozenset(unit for index in chosen for unit in (index, *syntax.units[index].spine))


def kept_text(file: SourceFile, syntax: FileSyntax, kept: frozenset[int]) -> bytes:
    """The kept units with a comment for each run of others, as a prompt shows them."""
    n_lines = syntax.units[-1].lines.end if syntax.units else 0
    shown = PromptFile(file.path, languages.comment_of(file.path), n_lines, syntax.language)
    out: list[bytes] = []
    first: int | None = None
    for unit in [*syntax.units, None]:
        if unit is not None and unit.index not in kept:
            first = unit.index if first is None else first
            continue
        if first is not None:
            last = unit.index - 1 if unit is not None else len(syntax.units) - 1
            n_lines = syntax.units[last].lines.end - syntax.units[first].lines.start + 1
            gone = syntax.units[first].span
            out.append(elision_line(shown, Gap(n_lines, indentation(file.data[gone.start : gone.end]))))
            first = None
        if unit is not None:
            out.append(file.data[unit.span.start : unit.span.end])
    return b"".join(out)
