"""The outline of a text, by its kind: where parts begin, how they nest, and what must not be cut. Row by row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

from agentctx.repo.languages import extension
from agentctx.repo.parse_lines import Lines
from agentctx.repo.plain_markup import markdown, rst
from agentctx.repo.plain_parts import Outline, paragraphs
from agentctx.repo.plain_statements import dockerfile, makefile, sql
from agentctx.repo.plain_tables import ini, json, properties, toml, yaml


def outline_of(path: str, lines: Lines) -> Outline:
    """By the name's ending, or the name; paragraphs where neither says anything."""
    name = PurePosixPath(path).name
    if name.startswith(("Dockerfile", "Containerfile")):
        return dockerfile(lines)
    if name in ("Makefile", "GNUmakefile", "makefile", "Justfile", "justfile"):
        return makefile(lines)
    return _OUTLINES.get(extension(path), paragraphs)(lines)


_OUTLINES: dict[str, Callable[[Lines], Outline]] = {
    **dict.fromkeys(("md", "markdown"), markdown),
    "rst": rst,
    "toml": toml,
    **dict.fromkeys(("ini", "cfg", "conf", "editorconfig"), ini),
    "properties": properties,
    **dict.fromkeys(("yaml", "yml"), yaml),
    **dict.fromkeys(("json", "jsonc", "json5"), json),
    "sql": sql,
    "mk": makefile,
    "dockerfile": dockerfile,
}
