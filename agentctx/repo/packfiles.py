"""Chosen units of files -> blocks of the prompt. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from agentctx.assemble import Block, Gap, Piece, indentation
from agentctx.prompt import Evidence, PromptFile, Section, Task, Tokenizer
from agentctx.repo.choose import UnitKey
from agentctx.repo.locate import Located
from agentctx.repo.rank import Ranked
from agentctx.source import FileSyntax, RepoGraph


@dataclass(frozen=True, slots=True)
class PackInput:
    """What is packed. `data` holds the bytes of every indexed file; `comment` a path's line comment."""

    graph: RepoGraph
    data: Mapping[str, bytes]
    task: Task
    evidence: Evidence
    located: Located
    ranking: Sequence[Ranked]
    changed: frozenset[str]  # files with uncommitted changes: they go behind the stable ones
    comment: Callable[[str], tuple[str, str]]
    recent: frozenset[str] = frozenset()  # files that the latest commits touched


def counter(given: PackInput, tokenizer: Tokenizer) -> Callable[[Sequence[UnitKey]], list[int]]:
    return lambda keys: tokenizer.count_batch([unit_bytes(given, key).decode("utf-8", "replace") for key in keys])


def unit_bytes(given: PackInput, key: UnitKey) -> bytes:
    span = given.graph.files[key[0]].units[key[1]].span
    return given.data[key[0]][span.start : span.end]


def known_files(given: PackInput, paths: Collection[str]) -> dict[str, PromptFile]:
    return {path: _prompt_file(given, path) for path in sorted(paths)}


def file_blocks(
    given: PackInput,
    units: Mapping[str, frozenset[int]],
    section: Section,
    scores: Mapping[UnitKey, tuple[float, str]],
) -> list[Block]:
    """One block per file, in the order of `units`."""
    blocks = []
    for path, chosen in units.items():
        syntax = given.graph.files[path]
        pieces = [_piece(given, syntax, unit, scores) for unit in sorted(chosen)]
        blocks.append(Block(section, tuple(pieces), _prompt_file(given, path), _gaps(given, syntax, sorted(chosen))))
    return blocks


def _prompt_file(given: PackInput, path: str) -> PromptFile:
    syntax = given.graph.files[path]
    n_lines = syntax.units[-1].lines.end if syntax.units else 0
    return PromptFile(path, given.comment(path), n_lines, syntax.language)


def _piece(given: PackInput, syntax: FileSyntax, number: int, scores: Mapping[UnitKey, tuple[float, str]]) -> Piece:
    unit = syntax.units[number]
    score, why = scores.get((syntax.path, number), (0.0, ""))
    return Piece(
        key=(syntax.path, number),
        kind=unit.kind,
        text=unit_bytes(given, (syntax.path, number)),
        lines=unit.lines,
        symbol=unit.symbol,
        spine=tuple((syntax.path, other) for other in unit.spine),
        score=score,
        why=why,
    )


def _gaps(given: PackInput, syntax: FileSyntax, chosen: Sequence[int]) -> tuple[Gap | None, ...]:
    """What the window leaves out before each chosen unit and after the last."""
    gaps: list[Gap | None] = []
    following = 0
    for number in (*chosen, len(syntax.units)):
        gaps.append(_gap(given, syntax, following, number) if number > following else None)
        following = number + 1
    return tuple(gaps)


def _gap(given: PackInput, syntax: FileSyntax, first: int, end: int) -> Gap:
    lines = syntax.units[end - 1].lines.end - syntax.units[first].lines.start + 1
    return Gap(lines, indentation(unit_bytes(given, (syntax.path, first))))
