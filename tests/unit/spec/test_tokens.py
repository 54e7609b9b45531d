"""tokenize and the byte <-> token map."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctx.prompt import PromptDocument, Section
from agentctx.source import UnitKind
from agentctx.spans import ByteSpan, TokenSpan
from agentctx.spec.tokens import decodable, token_at, tokenize, tokens_of
from tests.unit.spec.builders import Builder, ByteTokenizer, by_bytes


class WordTokenizer(ByteTokenizer):
    """Words, single other characters, and `<|...|>` as one token where special tokens are allowed. Drops blanks."""

    name = "words"

    def encode(self, text: str, *, special: bool = False) -> tuple[list[int], list[int]]:
        pattern = r"<\|\w+\|>|\w+|[^\w ]" if special else r"\w+|[^\w ]"
        found = list(re.finditer(pattern, text))
        return [len(m.group()) for m in found], [len(text[: m.start()].encode()) for m in found]


class PairTokenizer(ByteTokenizer):
    """Two bytes to a token: splits characters."""

    def encode(self, text: str, *, special: bool = False) -> tuple[list[int], list[int]]:
        data = text.encode()
        starts = list(range(0, len(data), 2))
        return [data[start] for start in starts], starts


def document(*texts: bytes, kind: UnitKind = UnitKind.BODY) -> PromptDocument:
    builder = Builder()
    for text in texts:
        builder.unit(text, kind)
    return builder.build()


def test_units_are_encoded_by_themselves() -> None:
    tokenized = tokenize(document(b"ab", b"cd ef\n", b""), WordTokenizer())
    assert tokenized.ids.tolist() == [2, 2, 2, 1]
    assert tokenized.starts.tolist() == [0, 2, 5, 7, 8]
    assert tokenized.unit_starts.tolist() == [0, 1, 4, 4]
    assert tokenized.unit_tokens(1) == TokenSpan(1, 4)
    assert (tokenized.tokenizer, tokenized.tokenizer_digest) == ("words", WordTokenizer.digest)


def test_only_scaffolding_holds_special_tokens() -> None:
    builder = Builder()
    builder.unit(b"<|im_start|>", UnitKind.SCAFFOLD, section=Section.SYSTEM)
    builder.unit(b"<|im_start|>", UnitKind.BODY)
    tokenized = tokenize(builder.build(), WordTokenizer())
    assert [len(tokenized.unit_tokens(unit)) for unit in (0, 1)] == [1, 5]


def test_dropped_blanks_belong_to_the_token_before_but_never_to_another_unit() -> None:
    tokenized = tokenize(document(b"a  b ", b"  c"), WordTokenizer())
    assert tokenized.starts.tolist() == [0, 3, 5, 8]
    assert token_at(tokenized, 4) == 1
    assert token_at(tokenized, 5) == 2


def test_arrays_are_read_only() -> None:
    tokenized = by_bytes(document(b"ab"))
    with pytest.raises(ValueError, match="read-only"):
        tokenized.ids[0] = 1


@pytest.mark.parametrize(
    ("data", "text", "origins"),
    [
        (b"ab\r\n", "ab\r\n", None),
        ("é€😀".encode(), "é€😀", None),
        (b"a\xffb", "a\ufffdb", [0, 1, 1, 1, 2, 3]),
        ("é".encode() + b"\xe2\x82", "é\ufffd\ufffd", [0, 1, 2, 2, 2, 3, 3, 3, 4]),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd", [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]),  # a surrogate is not UTF-8
    ],
)
def test_undecodable_bytes(data: bytes, text: str, origins: list[int] | None) -> None:
    assert decodable(data) == (text, origins)


@pytest.mark.parametrize(("span", "expected"), [((0, 2), (0, 1)), ((1, 3), (0, 2)), ((2, 2), (1, 1)), ((3, 5), (1, 3))])
def test_tokens_of(span: tuple[int, int], expected: tuple[int, int]) -> None:
    tokenized = tokenize(document(b"abcdef"), PairTokenizer())
    assert tokens_of(tokenized, ByteSpan(*span)) == TokenSpan(*expected)


def test_there_is_no_token_beyond_the_text() -> None:
    with pytest.raises(IndexError, match="byte 2"):
        token_at(by_bytes(document(b"ab")), 2)
    with pytest.raises(IndexError):
        token_at(by_bytes(document()), 0)


def test_bad_offsets_are_refused() -> None:
    class Backwards(ByteTokenizer):
        def encode(self, text: str, *, special: bool = False) -> tuple[list[int], list[int]]:
            return [1, 2, 3], [0, 2, 1]

    class TooFew(ByteTokenizer):
        def encode(self, text: str, *, special: bool = False) -> tuple[list[int], list[int]]:
            return [1, 2, 3], [0, 2]

    with pytest.raises(ValueError, match="not in order"):
        tokenize(document(b"abc"), Backwards())
    with pytest.raises(ValueError, match="3 ids but 2 offsets"):
        tokenize(document(b"abc"), TooFew())


TOKENIZERS: Sequence[ByteTokenizer] = (ByteTokenizer(), PairTokenizer(), WordTokenizer())


@given(texts=st.lists(st.binary(max_size=12), max_size=6), tokenizer=st.sampled_from(TOKENIZERS))
def test_any_bytes(texts: list[bytes], tokenizer: ByteTokenizer) -> None:
    made = document(*texts)
    tokenized = tokenize(made, tokenizer)
    assert (np.diff(tokenized.starts) >= 0).all()
    assert tokenized.starts[-1] == len(made.text)
    assert len(tokenized.starts) == tokenized.n_tokens + 1
    assert tokenized.unit_starts[0] == 0
    assert tokenized.unit_starts[-1] == tokenized.n_tokens
    for byte in range(len(made.text) if tokenized.n_tokens else 0):
        token = token_at(tokenized, byte)
        assert tokenized.starts[token] <= byte < tokenized.starts[token + 1]
        assert token in range(*(lambda s: (s.start, s.end))(tokens_of(tokenized, ByteSpan(byte, byte + 1))))


@given(st.binary(max_size=40))
def test_every_byte_has_its_place(data: bytes) -> None:
    text, origins = decodable(data)
    clean = text.encode()
    places = list(range(len(data) + 1)) if origins is None else origins
    assert len(places) == len(clean) + 1
    assert places[-1] == len(data)
    assert sorted(set(places)) == list(range(len(data) + 1))
    replaced = {place for place in places[:-1] if places.count(place) == 3}
    assert all(clean[at] == data[place] for at, place in enumerate(places[:-1]) if place not in replaced)
