"""Prompts for `bench whole`: a few files of a repository with all their units and links, as a window holds them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from random import Random

import numpy as np

from agentctx.assemble import Block, Key, Piece, assemble
from agentctx.bench.fuzz.files import corpus
from agentctx.prompt import Evidence, PackFacts, Pins, PromptDocument, Section, Task, TokenizedPrompt, readonly
from agentctx.repo import languages
from agentctx.repo.graph import build_graph
from agentctx.repo.locate import Located
from agentctx.repo.packfiles import PackInput, file_blocks, known_files
from agentctx.repo.packlinks import definitions_and_links
from agentctx.repo.parse import parse
from agentctx.source import FileSyntax, SourceFile, SymbolKind, UnitKind
from agentctx.spec.index import PromptIndex
from agentctx.spec.pins import collect


@dataclass(frozen=True)
class Group:
    """Files in one prompt. `places`: (path, unit of the file) -> unit of the prompt."""

    data: Mapping[str, bytes]
    syntax: Mapping[str, FileSyntax]
    tokenized: TokenizedPrompt
    places: Mapping[Key, int]
    pins: Pins
    index: PromptIndex

    @property
    def document(self) -> PromptDocument:
        return self.tokenized.document

    @cached_property
    def keys(self) -> Mapping[int, Key]:
        """Unit of the prompt -> (path, unit of the file)."""
        return {unit: key for key, unit in self.places.items()}


def chosen_files(folder: Path, per_language: int, seed: int, only: Sequence[str] = ()) -> list[SourceFile]:
    """Files of a repository, by language and path: neighbours speak of each other."""
    found = []
    for language, paths in corpus([folder]).items():
        if not only or language in only:
            chosen = Random(f"{seed}:{folder.name}:{language}").sample(paths, min(per_language, len(paths)))
            found += [_source(path, folder) for path in sorted(chosen)]
    return found


def _source(path: Path, folder: Path) -> SourceFile:
    name, data = path.relative_to(folder).as_posix(), path.read_bytes()
    language = languages.language_in(name, languages.language_of(name), data)
    return SourceFile(name, data, hashlib.sha256(data).hexdigest(), language, languages.is_test_path(name))


def packed(files: Sequence[SourceFile], random: Random) -> Group:
    """All units of the files in one prompt, a request behind them, and half of the time a target to edit."""
    graph = build_graph([parse(file) for file in files])
    data = {file.path: file.data for file in files}
    given = PackInput(graph, data, Task(), Evidence(), Located(), (), frozenset(), languages.comment_of)
    units = {path: frozenset(range(len(syntax.units))) for path, syntax in graph.files.items()}
    request = Piece(("", 0), UnitKind.REQUEST, b"\nMend it.\n")
    made = assemble([*file_blocks(given, units, Section.CODE, {}), Block(Section.REQUEST, (request,))])
    definitions, links = definitions_and_links(graph, data, given.evidence, given.task, made)
    editable = [d.symbol for d in definitions.values() if d.kind is not SymbolKind.MODULE and d.header is not None]
    targets = (random.choice(editable),) if editable and random.random() < 0.5 else ()
    document = PromptDocument(
        made.text, made.units, known_files(given, list(data)), definitions, links, PackFacts(targets=targets)
    )
    tokenized, index = by_bytes(document), PromptIndex(document)
    places = {key: unit for key, unit in made.index.items() if key[0] in data}
    return Group(data, graph.files, tokenized, places, collect(document, tokenized, index=index), index)


def by_bytes(document: PromptDocument) -> TokenizedPrompt:
    """A token for each byte: another tokenizer changes which units fit, not what is kept of one."""
    edges = [0, *accumulate(len(unit.span) for unit in document.units)]
    return TokenizedPrompt(
        document=document,
        ids=readonly(np.frombuffer(document.text, dtype=np.uint8).astype(np.int32)),
        starts=readonly(np.arange(len(document.text) + 1, dtype=np.int32)),
        unit_starts=readonly(np.array(edges, dtype=np.int32)),
    )
