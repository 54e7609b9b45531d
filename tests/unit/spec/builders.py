"""Small prompts for tests of spec/: a document from a few lines, and a tokenizer whose tokens are bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from agentctx.prompt import (
    Definition,
    Need,
    PackFacts,
    PromptDocument,
    PromptFile,
    PromptLink,
    PromptUnit,
    Section,
    TokenizedPrompt,
)
from agentctx.source import Resolution, Role, SymbolKind, UnitKind
from agentctx.spans import ByteSpan, LineSpan
from agentctx.spec.tokens import tokenize


class ByteTokenizer:
    """One token for every UTF-8 byte: a unit costs as many tokens as it has bytes."""

    name = "bytes"
    digest = hashlib.sha256(b"bytes").hexdigest()

    def encode(self, text: str, *, special: bool = False) -> tuple[list[int], list[int]]:
        data = list(text.encode())
        return data, list(range(len(data)))

    def count_batch(self, texts: Sequence[str]) -> list[int]:
        return [len(text.encode()) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        return bytes(ids).decode("utf-8", "replace")


def line(size: int, text: str = "") -> bytes:
    """A line of `size` bytes that begins with `text`."""
    return text.encode().ljust(size - 1, b".") + b"\n"


@dataclass
class Builder:
    """Appends units; `build` closes spines and lays the text out."""

    texts: list[bytes] = field(default_factory=list)
    units: list[PromptUnit] = field(default_factory=list)
    definitions: dict[str, Definition] = field(default_factory=dict)
    links: list[PromptLink] = field(default_factory=list)
    files: dict[str, PromptFile] = field(default_factory=dict)

    def unit(
        self,
        text: bytes | int,
        kind: UnitKind = UnitKind.BODY,
        *,
        section: Section = Section.CODE,
        path: str | None = None,
        symbol: str | None = None,
        spine: Sequence[int] = (),
        score: float = 0.0,
    ) -> int:
        number = len(self.units)
        data = text if isinstance(text, bytes) else line(text)
        closed = sorted(set(spine) | {other for unit in spine for other in self.units[unit].spine})
        lines = LineSpan(number + 1, number + 1) if path and kind not in (UnitKind.FILE, UnitKind.ELISION) else None
        self.units.append(
            PromptUnit(number, section, kind, ByteSpan(0, 0), path, lines, symbol, tuple(closed), score, "")
        )
        self.texts.append(data)
        return number

    def file(self, path: str, *, section: Section = Section.CODE) -> int:
        """The FILE unit. Costs as many bytes as `# path` and a newline."""
        self.files[path] = PromptFile(path, ("#", ""), 0, "python")
        return self.unit(f"# {path}\n".encode(), UnitKind.FILE, section=section, path=path)

    def define(
        self,
        symbol: str,
        file: int,
        *,
        kind: SymbolKind = SymbolKind.FUNCTION,
        header: int | bytes = 10,
        body: Sequence[int] = (30,),
        parent: str | None = None,
        score: float = 0.0,
        is_test: bool = False,
        is_fixture: bool = False,
    ) -> Definition:
        """A definition in the file whose FILE unit is `file`: a header and body units of the given sizes."""
        path = self.units[file].path
        assert path is not None
        outer = () if parent is None else (self._header(parent),)
        section = self.units[file].section
        header_kind = UnitKind.STATEMENT if kind is SymbolKind.CONSTANT else UnitKind.HEADER
        top = self.unit(
            header, header_kind, section=section, path=path, symbol=symbol, spine=(file, *outer), score=score
        )
        units = [top]
        for size in body:
            units.append(self.unit(size, section=section, path=path, symbol=symbol, spine=(top,), score=score))
        made = Definition(
            symbol=symbol,
            name=symbol.split("::")[-1].split(".")[-1],
            kind=kind,
            path=path,
            lines=LineSpan(top + 1, top + len(units)),
            header=top,
            units=tuple(units),
            parent=parent,
            is_test=is_test,
            is_fixture=is_fixture,
        )
        self.definitions[symbol] = made
        while parent is not None:
            outside = self.definitions[parent]
            self.definitions[parent] = replace(outside, units=(*outside.units, *units))
            parent = outside.parent
        return made

    def _header(self, symbol: str) -> int:
        header = self.definitions[symbol].header
        assert header is not None
        return header

    def absent(self, symbol: str, kind: SymbolKind = SymbolKind.FUNCTION) -> None:
        """A definition outside the window."""
        path, name = symbol.split("::")
        self.definitions[symbol] = Definition(symbol, name.split(".")[-1], kind, path, LineSpan(1, 2), None)

    def change(self, symbol: str, **values: object) -> None:
        self.definitions[symbol] = replace(self.definitions[symbol], **values)  # type: ignore[arg-type]

    def link(
        self,
        unit: int,
        *targets: str,
        role: Role = Role.CALL,
        via: int | None = None,
        state: Resolution = Resolution.RESOLVED,
        name: str | None = None,
        needs: tuple[Need, ...] = (),
    ) -> None:
        called = name or targets[0].split("::")[-1].split(".")[-1]
        place = (self.units[unit].path, unit + 1)
        self.links.append(PromptLink(unit, called, role, state, tuple(sorted(targets)), *place, via, needs=needs))

    def frame(self, request: int = 20) -> None:
        """System prompt first; request and tail last. Call after everything else but `build`."""
        self.unit(request, UnitKind.REQUEST, section=Section.REQUEST)
        self.unit(64, UnitKind.SCAFFOLD, section=Section.TAIL)

    def build(self, **facts: object) -> PromptDocument:
        at = 0
        units = []
        for unit, text in zip(self.units, self.texts, strict=True):
            units.append(replace(unit, span=ByteSpan(at, at + len(text))))
            at += len(text)
        return PromptDocument(
            b"".join(self.texts),
            tuple(units),
            self.files,
            self.definitions,
            tuple(self.links),
            PackFacts(**facts),  # type: ignore[arg-type]
        )


def by_bytes(document: PromptDocument) -> TokenizedPrompt:
    return tokenize(document, ByteTokenizer())
