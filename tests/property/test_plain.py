"""Units of text without a grammar: whatever the text is, they tile it, nest, and keep what belongs together."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctx.repo.plain import MAX_LINES, units
from agentctx.source import Unit
from agentctx.spans import tiles

KINDS = (
    "a.md",
    "a.rst",
    "a.toml",
    "a.ini",
    "a.properties",
    "a.yaml",
    "a.json",
    "a.sql",
    "Makefile",
    "Dockerfile",
    "a.txt",
)
ROWS = st.sampled_from(
    [
        b"", b"", b"# One", b"### Three", b"```", b"~~~~", b"---", b"===", b"| a |", b"- item", b"  deep", b"\ttab",
        b"[x]", b'k = """', b'"""', b"key: |", b"key: 1", b"{", b"}", b'"k": [', b"],", b"SELECT 'a;", b"';", b"$$",
        b"/*", b"*/", b"all: b \\", b"define X", b"endef", b"FROM x AS y", b"RUN a \\", b"Title", b"\xff\xfe",
        b"\x0c", b"\r", b"\\", b'"', b"'", b"...", b"\xef\xbb\xbf# bom",
    ]
)  # fmt: skip
TEXTS = st.tuples(st.lists(ROWS, max_size=120), st.sampled_from([b"\n", b"\r\n"]), st.booleans()).map(
    lambda made: made[1].join(made[0]) + (made[1] if made[2] else b"")
)


def check(path: str, data: bytes) -> tuple[Unit, ...]:
    found = units(path, data)
    assert tiles([unit.span for unit in found], len(data))
    assert [unit.index for unit in found] == list(range(len(found)))
    last = 0
    for unit in found:
        assert unit.lines.start == last + 1
        last = unit.lines.end
        assert unit.spine == tuple(sorted(set(unit.spine) - {unit.index}))
        for other in unit.spine:
            assert {*found[other].spine} <= {*unit.spine, unit.index}, "the spine is closed"
    return found


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(KINDS), TEXTS)
def test_any_text(path: str, data: bytes) -> None:
    check(path, data)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.sampled_from([b"\n", b"\r\n"]))
def test_fences_are_never_cut_and_headings_come_along(lengths: list[int], end: bytes) -> None:
    rows: list[bytes] = [b"# Top"]
    for number, length in enumerate(lengths):
        rows += [b"", b"## Part %d" % number, b"", b"```", *[b"", b"# code"] * length, b"```"]
    data = end.join(rows)
    found = check("a.md", data)
    for unit in found:
        text = data[unit.span.start : unit.span.end]
        assert text.count(b"```") in (0, 2)
        if unit.index:
            assert found[0].index in unit.spine
        if b"```" in text:
            assert any(b"## Part" in data[found[i].span.start : found[i].span.end] for i in (*unit.spine, unit.index))


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=30,
)


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(st.text(min_size=1, max_size=6), VALUES, min_size=1, max_size=12), st.sampled_from([None, 2, "\t"])
)
def test_json_without_some_of_its_keys_is_json(value: dict[str, object], indent: int | str | None) -> None:
    data = json.dumps(value, indent=indent).encode()
    found = check("a.json", data)
    if indent is None:
        assert len(found) == 1, "in one row: one unit"
        return
    shown = {0, len(found) - 1} if len(found) > 1 else {0}
    for unit in found:
        kept = sorted({*shown, unit.index, *unit.spine})
        text = b"".join(data[found[i].span.start : found[i].span.end] for i in kept).decode()
        text = text.rstrip()
        body = text[1:-1].rstrip().removesuffix(",")
        assert set(json.loads("{" + body + "}")) <= set(value)


@pytest.mark.parametrize("path", KINDS)
def test_long_text_is_cut_and_takes_time_in_proportion(path: str) -> None:
    data = b"".join(b"key%d: value\n  more\n" % n for n in range(20_000))
    start = time.process_time()
    found = check(path, data)
    assert time.process_time() - start < 8
    assert max(len(unit.lines) for unit in found) <= MAX_LINES
