"""Signature lines: one short line for each definition that packed code uses. Pure.

A header with its decorators, the first paragraph of its doc and the headers around it takes about four times as many
tokens as the signature alone. Where the budget has no room for headers, the lines of what kept code uses stand in
their stead, in a section of their own behind the code. They are laid out for all that may be needed; those that
aren't kept take no positions and nobody reads them (`spec.sparse`). What a line names in turn isn't followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from agentctx.assemble import Block, Piece, assemble
from agentctx.prompt import Definition, PromptDocument, Section, TokenizedPrompt, Tokenizer, readonly
from agentctx.source import Resolution, Role, SymbolKind, UnitKind
from agentctx.spec.splice import spliced
from agentctx.spec.tokens import tokenize

HEADING = b"\nSignatures of what the code uses and that is left out:\n"
SHORTENED, LONG = "...", 120  # how long signatures end; shorter ones may end so in their own right
_USERS = (Section.CODE, Section.EDITED, Section.TESTS)
_BEHIND = (Section.TESTS, Section.LOG, Section.REQUEST, Section.TAIL)


def with_lines(tokenized: TokenizedPrompt, tokenizer: Tokenizer) -> TokenizedPrompt:
    """The prompt with a section of signature lines behind its code, or as it is where no line is needed.

    Units before the section keep their numbers, those behind it move by its length.
    """
    document = tokenized.document
    symbols = used(document)
    if not symbols:
        return tokenized
    at = place(document)
    made = assemble([Block(Section.SIGNATURES, tuple(_pieces(document.definitions, symbols)))])
    lines = {symbol: at + made.index[(symbol, 0)] for symbol in symbols}
    with_section = spliced(document, made, at)
    definitions = {
        symbol: replace(one, line=lines[symbol]) if symbol in lines else one
        for symbol, one in with_section.definitions.items()
    }
    section = tokenize(PromptDocument(made.text, made.units), tokenizer)
    return _joined(tokenized, section, at, replace(with_section, definitions=definitions))


def used(document: PromptDocument) -> list[str]:
    """Definitions that packed code and tests use, by file and line. To be imported is no use; a module has no line."""
    definitions = document.definitions
    found = {
        target
        for link in document.links
        if link.state is Resolution.RESOLVED and link.role is not Role.IMPORT
        if document.units[link.unit].section in _USERS
        for target in link.targets
        if target in definitions and definitions[target].kind is not SymbolKind.MODULE
    }
    return sorted(found, key=lambda one: (definitions[one].path, definitions[one].lines.start, one))


def place(document: PromptDocument) -> int:
    """The unit before which the section comes."""
    return next((unit.index for unit in document.units if unit.section in _BEHIND), len(document.units))


def line_of(definition: Definition) -> str:
    """Its signature, with what it is a member of: `def Context.invoke(self, callback)`."""
    signature = _without_part(definition.signature) or definition.name
    owner = _owner(definition)
    if not owner:
        return signature
    name = re.search(rf"(?<![\w.]){re.escape(definition.name)}(?!\w)", signature)
    if name is None:
        return f"{owner}: {signature}"
    before = signature[: name.start()]
    last = owner.rpartition(".")[2]
    is_constructor = definition.name == last and definition.kind is SymbolKind.METHOD
    if is_constructor or re.search(rf"(?<!\w){re.escape(last)}(?!\w)", before):
        return signature  # `public Reader(File file)`, `func (c *Context) Next()`
    return f"{before}{owner}.{signature[name.start() :]}"


def _without_part(signature: str) -> str:
    """A signature that was shortened, without the word in which it ends: part of a secret doesn't look like one."""
    if not signature.endswith(SHORTENED) or len(signature) < LONG:
        return signature
    return signature.removesuffix(SHORTENED).rpartition(" ")[0] + " " + SHORTENED


def _owner(definition: Definition) -> str:
    """`Outer.Inner`; '' for what a module holds."""
    names = definition.symbol.partition("::")[2].split(".")
    return ".".join(name.partition("~")[0] for name in names[:-1])


def _pieces(definitions: Mapping[str, Definition], symbols: Sequence[str]) -> Iterator[Piece]:
    """The heading, and for each file its name and the lines."""
    top = ("signatures", -1)
    yield Piece(top, UnitKind.HEADING, HEADING)
    path = None
    for symbol in symbols:
        one = definitions[symbol]
        if one.path != path:
            path = one.path
            yield Piece((path, -1), UnitKind.HEADING, _bytes(f"{path}:\n"), spine=(top,))
        yield Piece((symbol, 0), UnitKind.SIGNATURE, _bytes(line_of(one) + "\n"), symbol=symbol, spine=((path, -1),))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _joined(outer: TokenizedPrompt, inner: TokenizedPrompt, at: int, document: PromptDocument) -> TokenizedPrompt:
    """The tokens of `document`: those of `inner` before the unit `at` of `outer`."""
    token = int(outer.unit_starts[at])
    byte = int(outer.document.units[at].span.start) if at < len(outer.document.units) else len(outer.document.text)
    starts = (outer.starts[:token], byte + inner.starts[:-1], len(inner.document.text) + outer.starts[token:])
    units = (outer.unit_starts[:at], token + inner.unit_starts[:-1], inner.n_tokens + outer.unit_starts[at:])
    return replace(
        outer,
        document=document,
        ids=readonly(np.concatenate([outer.ids[:token], inner.ids, outer.ids[token:]])),
        starts=readonly(np.concatenate(starts).astype(np.int32)),
        unit_starts=readonly(np.concatenate(units).astype(np.int32)),
    )
