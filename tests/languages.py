"""Sources of every language, from the golden cases of units: what property tests take apart."""

from __future__ import annotations

from functools import cache

from agentctx.repo import languages
from agentctx.repo.parse import parse
from agentctx.source import FileSyntax, SourceFile
from tests.casefile import CASES, read_case
from tests.unit_checks import source

CAPTURED = sorted({*languages.LANGUAGES} - {"python"})


@cache
def samples() -> dict[str, list[tuple[str, bytes]]]:
    """Language -> (name, content) of its sources in the cases."""
    found: dict[str, list[tuple[str, bytes]]] = {language: [] for language in CAPTURED}
    for language in sorted({*CAPTURED} - {"tsx"}):
        for name, text in read_case(CASES / "units" / f"{language}.md").files.items():
            found[languages.language_of(name) or ""].append((name, text.encode()))
    return found


@cache
def parsed(language: str, number: int, endings: bytes = b"\n") -> tuple[SourceFile, FileSyntax]:
    """A sample of the language, with other line endings."""
    name, data = samples()[language][number % len(samples()[language])]
    file = source(name, data.replace(b"\n", endings))
    return file, parse(file)
