"""SourceFile -> FileSyntax: units, symbols, references, imports. Never fails on broken code.

Python goes through modules of its own, the other languages through the captures of their queries; what has no grammar
is cut into paragraphs.
"""

from __future__ import annotations

from agentctx.repo import plain
from agentctx.repo.languages import language_in
from agentctx.repo.lenient import with_neighbours
from agentctx.repo.parse_captured import parse_captured
from agentctx.repo.parse_python import parse_python
from agentctx.repo.trees import TooHard
from agentctx.source import FileSyntax, SourceFile


def parse(file: SourceFile) -> FileSyntax:
    """All that can be said of one file by itself. Deterministic; broken code only raises `n_errors`.

    Code that a grammar can't be used on is plain text with an error: its `language` is None.
    """
    language = language_in(file.path, file.language, file.data)
    if language is None:
        return FileSyntax(file.path, None, file.digest, plain.units(file.path, file.data), is_test=file.is_test)
    try:
        syntax = parse_python(file) if language == "python" else parse_captured(file, language)
        return with_neighbours(file, syntax)
    except TooHard:
        units = plain.units(file.path, file.data)
        return FileSyntax(file.path, None, file.digest, units, n_errors=1, is_test=file.is_test)
