"""PromptDocument + Tokenizer -> TokenizedPrompt, and the map between its bytes and tokens. Pure.

Each unit is encoded by itself. Bytes that are not UTF-8 are shown to the tokenizer as U+FFFD, one for each
byte; the offsets still count bytes of the document (see `decodable`).
"""

from __future__ import annotations

import numpy as np

from agentctx.prompt import Int32, PromptDocument, TokenizedPrompt, Tokenizer, readonly
from agentctx.source import UnitKind
from agentctx.spans import ByteSpan, TokenSpan

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def tokenize(document: PromptDocument, tokenizer: Tokenizer) -> TokenizedPrompt:
    """Tokens of every unit. Only scaffolding may hold special tokens.

    A unit's first token starts where the unit does; bytes that a tokenizer drops belong to the token before.

    Raises:
        ValueError: the tokenizer's offsets are not as many as its ids, or not in order.
    """
    ids: list[int] = []
    starts: list[int] = []
    unit_starts = [0]
    for unit in document.units:
        text, origins = decodable(document.unit_text(unit.index))
        unit_ids, offsets = tokenizer.encode(text, special=unit.kind is UnitKind.SCAFFOLD)
        if len(unit_ids) != len(offsets):
            raise ValueError(f"{tokenizer.name}: {len(unit_ids)} ids but {len(offsets)} offsets")
        local = offsets if origins is None else [origins[offset] for offset in offsets]
        ids.extend(unit_ids)
        starts.extend(unit.span.start + offset for offset in (0, *local[1:]) if unit_ids)
        unit_starts.append(len(ids))
    starts.append(len(document.text))
    if len(ids):
        starts[0] = 0
    return TokenizedPrompt(
        document=document,
        ids=_int32(ids),
        starts=_in_order(_int32(starts), tokenizer),
        unit_starts=_int32(unit_starts),
        tokenizer=tokenizer.name,
        tokenizer_digest=tokenizer.digest,
    )


def decodable(data: bytes) -> tuple[str, list[int] | None]:
    """Text for a tokenizer, and for each byte of its UTF-8 form (and its end) the byte of `data` that it stands for.

    None stands for the identity: `data` is UTF-8. Else each undecodable byte became U+FFFD, which is three bytes
    long: all three stand for the one byte, so that offsets stay monotone. Where a tokenizer splits that
    character, the tokens have the same start and the last of them holds the byte.
    """
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError:
        escaped = data.decode("utf-8", "surrogateescape")
    clean: list[str] = []
    origins: list[int] = []
    at = 0
    for char in escaped:
        if "\udc80" <= char <= "\udcff":  # what surrogateescape makes of a byte that is not UTF-8
            clean.append(REPLACEMENT)
            origins.extend([at] * 3)
            at += 1
        else:
            width = len(char.encode())
            clean.append(char)
            origins.extend(range(at, at + width))
            at += width
    return "".join(clean), [*origins, at]


def token_at(tokenized: TokenizedPrompt, byte: int) -> int:
    """The token that holds a byte of the document.

    Raises:
        IndexError: there is no such byte, or there are no tokens.
    """
    if not (0 <= byte < len(tokenized.document.text) and tokenized.n_tokens):
        raise IndexError(f"no token holds byte {byte}")
    return int(np.searchsorted(tokenized.starts[:-1], byte, side="right")) - 1


def tokens_of(tokenized: TokenizedPrompt, span: ByteSpan) -> TokenSpan:
    """The tokens that hold any byte of `span`; those of no width at its start are in, those at its end are not."""
    starts = tokenized.starts[:-1]
    end = int(np.searchsorted(starts, span.end, side="left"))
    if not len(span) or not len(starts):
        return TokenSpan(end, end)
    first = int(np.searchsorted(starts, span.start, side="left"))
    if first == len(starts) or starts[first] != span.start:
        first -= 1
    return TokenSpan(first, max(first, end))


def _int32(values: list[int]) -> Int32:
    return readonly(np.array(values, dtype=np.int32))


def _in_order(starts: Int32, tokenizer: Tokenizer) -> Int32:
    if (np.diff(starts) < 0).any():
        raise ValueError(f"{tokenizer.name}: the offsets of its tokens are not in order")
    return starts
