from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders import Builder, ByteTokenizer, by_bytes
from hypothesis import given
from hypothesis import strategies as st

from agentctx.assemble import restrict
from agentctx.prompt import (
    Definition,
    KeptUnit,
    Need,
    NeedKind,
    OmissionAction,
    PromptDocument,
    Section,
    Selection,
    SymbolState,
    TokenizedPrompt,
    Why,
)
from agentctx.source import Resolution, Role, SymbolKind, UnitKind
from agentctx.spans import LineSpan
from agentctx.spec.check import check
from agentctx.spec.draft import Draft, unit_sizes
from agentctx.spec.index import PromptIndex
from agentctx.spec.keep import keep
from agentctx.spec.pins import collect
from agentctx.spec.select import SelectOptions, rank_scores
from agentctx.spec.signatures import HEADING, line_of, used, with_lines
from agentctx.spec.sparse import to_sparse, whole_window
from agentctx.spec.tokens import tokenize


@pytest.mark.parametrize(
    ("symbol", "kind", "signature", "line"),
    [
        ("a.py::run", SymbolKind.FUNCTION, "def run(a)", "def run(a)"),
        ("a.py::Box.run", SymbolKind.METHOD, "def run(self)", "def Box.run(self)"),
        ("a.py::Box.run~3", SymbolKind.METHOD, "def run(self)", "def Box.run(self)"),
        ("a.py::Out~2.Box.run", SymbolKind.METHOD, "async def run(self, rerun)", "async def Out.Box.run(self, rerun)"),
        ("a.py::Box._n", SymbolKind.FIELD, "self._n = 0", "Box: self._n = 0"),
        ("a.py::Box.n", SymbolKind.FIELD, "n: int", "Box.n: int"),
        ("a.go::Context.Next", SymbolKind.METHOD, "func (c *Context) Next()", "func (c *Context) Next()"),
        ("A.java::Reader.Reader", SymbolKind.METHOD, "public Reader(File f)", "public Reader(File f)"),
        ("A.java::Reader.peek", SymbolKind.METHOD, "public int peek()", "public int Reader.peek()"),
        ("d.go::Data.Data", SymbolKind.FIELD, "Data []byte", "Data.Data []byte"),
        ("a.ts::Box.on", SymbolKind.METHOD, "(event) => void", "Box: (event) => void"),
        ("a.py::gone", SymbolKind.CONSTANT, "", "gone"),
    ],
)
def test_a_line_says_what_a_definition_is_a_member_of(symbol: str, kind: SymbolKind, signature: str, line: str) -> None:
    name = symbol.partition("::")[2].rpartition(".")[2].partition("~")[0]
    found = Definition(symbol, name, kind, symbol.partition("::")[0], LineSpan(1, 1), None, signature=signature)
    assert line_of(found) == line


def test_a_shortened_signature_does_not_end_within_a_word() -> None:
    """Half a key doesn't look like one: nobody would find it."""
    signature = f"{'KEYS = (1, ' + '2, ' * 40}'sk-abcdef..."
    found = Definition("a.py::KEYS", "KEYS", SymbolKind.CONSTANT, "a.py", LineSpan(1, 1), None, signature=signature)
    assert line_of(found) == f"KEYS = (1, {'2, ' * 40}...".replace("  ", " ")
    short = replace(found, signature="def f(self): ...")
    assert line_of(short) == "def f(self): ..."


# ---------------------------------------------------------------- laying them out


def shop() -> Builder:
    """`pay` (of tier 3) uses two definitions of 200 tokens, one that isn't packed, and imports a fourth."""
    b = Builder()
    b.unit(b"Fix it.\n", UnitKind.SCAFFOLD, section=Section.SYSTEM)
    file = b.file("shop.py")
    total = b.define("shop.py::total", file, header=200, body=(30,))
    b.change("shop.py::total", signature="def total(items)")
    b.define("shop.py::Tax", file, kind=SymbolKind.CLASS, header=200, body=(30,))
    b.change("shop.py::Tax", signature="class Tax")
    via = b.unit(12, UnitKind.IMPORT, path="shop.py", spine=(file,))
    pay = b.define("shop.py::pay", file, header=20, body=(40,), score=5.0)
    b.absent("lib.py::Coin")
    b.absent("lib.py::spare")
    b.link(pay.units[1], "shop.py::total", needs=(Need(NeedKind.VARIABLE, (pay.units[0],)),))
    b.link(pay.units[1], "shop.py::Tax", role=Role.TYPE)
    b.link(pay.units[1], "lib.py::Coin", via=via)
    b.link(via, "lib.py::spare", role=Role.IMPORT)
    b.link(total.units[1], "shop.py::Tax", "lib.py::Coin", state=Resolution.AMBIGUOUS)
    tests = b.file("test_shop.py", section=Section.TESTS)
    check = b.define("test_shop.py::test_pay", tests, header=20, body=(20,), is_test=True)
    b.link(check.units[1], "shop.py::pay")
    b.frame()
    return b


def built(b: Builder) -> TokenizedPrompt:
    last = len(b.units) - 1
    return with_lines(
        by_bytes(b.build(failing_tests=("test_shop.py::test_pay",), error_units=(last,))), ByteTokenizer()
    )


def text_of(document: PromptDocument, section: Section = Section.SIGNATURES) -> bytes:
    return b"".join(document.unit_text(unit.index) for unit in document.units if unit.section is section)


def test_the_section_stands_behind_the_code_and_names_what_is_used() -> None:
    full = built(shop())
    lines = b"lib.py:\nCoin\nshop.py:\ndef total(items)\nclass Tax\npay\n"
    assert text_of(full.document) == HEADING + lines
    sections = list(dict.fromkeys(unit.section for unit in full.document.units))
    at = sections.index(Section.SIGNATURES)
    assert sections[at - 1 : at + 2] == [Section.CODE, Section.SIGNATURES, Section.TESTS]
    assert used(full.document) == ["lib.py::Coin", "shop.py::total", "shop.py::Tax", "shop.py::pay"]


def test_tokens_are_those_of_the_document_encoded_anew() -> None:
    full = built(shop())
    anew = tokenize(full.document, ByteTokenizer())
    for name in ("ids", "starts", "unit_starts"):
        np.testing.assert_array_equal(getattr(full, name), getattr(anew, name))
        assert not getattr(full, name).flags.writeable


def test_everything_that_names_a_unit_moved_with_it() -> None:
    b = shop()
    window, full = (
        b.build(failing_tests=("test_shop.py::test_pay",), error_units=(len(b.units) - 1,)),
        built(b).document,
    )
    n_lines = len(full.units) - len(window.units)
    before = [full.unit_text(unit.index) for unit in full.units if unit.section is not Section.SIGNATURES]
    assert before == [window.unit_text(unit.index) for unit in window.units]
    for symbol, old in window.definitions.items():
        new = full.definitions[symbol]
        assert [full.unit_text(u) for u in new.units] == [window.unit_text(u) for u in old.units]
        assert (new.header is None) == (old.header is None)
        assert new.header in (*new.units[:1], None)
    for old, new in zip(window.links, full.links, strict=True):
        assert full.unit_text(new.unit) == window.unit_text(old.unit)
        assert [full.unit_text(u) for n in new.needs for u in n.units] == [
            window.unit_text(u) for n in old.needs for u in n.units
        ]
    assert full.facts.error_units == (window.facts.error_units[0] + n_lines,)
    for unit in full.units:
        assert all(full.units[other].section is unit.section for other in unit.spine)


def test_a_prompt_that_uses_nothing_stays_as_it_is() -> None:
    b = Builder()
    b.define("a.py::f", b.file("a.py"))
    b.frame()
    tokenized = by_bytes(b.build())
    assert with_lines(tokenized, ByteTokenizer()) is tokenized


# ---------------------------------------------------------------- keeping them


def selected(full: TokenizedPrompt, limit: int) -> Selection:
    document, index = full.document, PromptIndex(full.document)
    pins = collect(document, full, index=index)
    return keep(full, rank_scores(document), pins, SelectOptions(limit), index=index)[0]


def states(full: TokenizedPrompt, selection: Selection) -> dict[str, SymbolState]:
    return {one.symbol: one.state for one in check(full.document, selection).omissions}


def dropped(found: dict[str, SymbolState]) -> set[str]:
    """`spare`, which is imported and never used, has no line."""
    return {symbol for symbol, state in found.items() if state is SymbolState.DROPPED}


def test_a_line_stands_for_a_header_that_does_not_fit() -> None:
    full = built(shop())
    selection = selected(full, 420)
    found = states(full, selection)
    wanted = ("shop.py::total", "shop.py::Tax", "lib.py::Coin")
    assert [found[symbol] for symbol in wanted] == [SymbolState.SIGNATURE] * 3
    text = restrict(full.document, selection.units)[0]
    assert text_of(text) == HEADING + b"lib.py:\nCoin\nshop.py:\ndef total(items)\nclass Tax\n"
    assert selection.n_tokens <= 420
    repaired = {one.symbol: one.action for one in check(full.document, selection).omissions}
    assert repaired["lib.py::Coin"] is OmissionAction.REPAIRED


def test_headers_come_in_where_all_lines_still_fit() -> None:
    full = built(shop())
    headers = {s: full.document.definitions[s].header for s in ("shop.py::total", "shop.py::Tax")}
    kept = [{s for s, h in headers.items() if h in selected(full, limit).units} for limit in (420, 640, 900)]
    assert [len(found) for found in kept] == [0, 1, 2]
    assert dropped(states(full, selected(full, 900))) == {"lib.py::spare"}


@given(st.integers(330, 1200))
def test_what_a_line_stands_for_is_not_kept_as_well(limit: int) -> None:
    full = built(shop())
    selection = selected(full, limit)
    assert selection.n_tokens == sum(len(full.unit_tokens(unit)) for unit in selection.units) <= limit
    for one in full.document.definitions.values():
        assert one.line not in selection.units or one.header not in selection.units
    for unit in full.document.units:
        if unit.kind is UnitKind.HEADING and unit.index in selection.units:
            assert any(unit.index in full.document.units[other].spine for other in selection.units)


def test_a_header_puts_its_line_out_and_the_headings_nobody_needs() -> None:
    full = built(shop())
    index = PromptIndex(full.document)
    draft = Draft(index, unit_sizes(full), 10_000, 10_000)
    coin, tax = (full.document.definitions[s] for s in ("lib.py::Coin", "shop.py::Tax"))
    assert coin.line is not None
    assert tax.line is not None
    assert tax.header is not None
    draft.keep(coin.line, Why.REPAIRED, 2)
    draft.keep(tax.line, Why.REPAIRED, 2)
    assert [full.document.unit_text(unit) for unit in sorted(draft.kept)] == [
        HEADING,
        b"lib.py:\n",
        b"Coin\n",
        b"shop.py:\n",
        b"class Tax\n",
    ]
    draft.keep(tax.header, Why.SCORED, 3)
    left = [full.document.unit_text(unit) for unit in sorted(draft.kept) if full.document.units[unit].path is None]
    assert left == [HEADING, b"lib.py:\n", b"Coin\n"]
    assert draft.n_tokens == sum(len(full.unit_tokens(unit)) for unit in draft.kept)


def test_without_its_line_a_definition_is_dropped() -> None:
    full = built(shop())
    selection = selected(full, 420)
    line = full.document.definitions["lib.py::Coin"].line
    assert line in selection.units
    less = replace(selection, kept=tuple(one for one in selection.kept if one.unit != line))
    assert states(full, less)["lib.py::Coin"] is SymbolState.DROPPED
    assert dropped(states(full, selection)) == {"lib.py::spare"}


def test_a_line_is_no_whole_definition() -> None:
    """Though all of its packed units (there are none) are kept."""
    full = built(shop())
    line = full.document.definitions["lib.py::Coin"].line
    pay = full.document.definitions["shop.py::pay"].units
    assert line is not None
    kept = tuple(KeptUnit(unit, 3, Why.SCORED) for unit in sorted((*pay, line)))
    assert states(full, Selection(kept, 999, 1))["lib.py::Coin"] is SymbolState.SIGNATURE


# ---------------------------------------------------------------- reading them


def test_lines_that_are_not_kept_take_no_positions() -> None:
    full = built(shop())
    window = by_bytes(shop().build())
    dense = whole_window(full)
    np.testing.assert_array_equal(dense.ids, window.ids)
    assert dense.positions.tolist() == list(range(window.n_tokens))

    selection = selected(full, 420)
    sparse, _ = to_sparse(full, selection.units, max_position=None)
    lines = sum(len(full.unit_tokens(u)) for u in selection.units if full.document.units[u].section == "signatures")
    assert lines > 0
    assert sparse.total == window.n_tokens + lines
    assert len(sparse.ids) == selection.n_tokens
    first = next(unit for unit in full.document.units if unit.section is Section.SIGNATURES)
    code = [
        p
        for p, i in zip(sparse.positions.tolist(), sparse.ids.tolist(), strict=True)
        if p < full.unit_starts[first.index]
    ]
    assert code == [
        token
        for unit in sorted(selection.units)
        if unit < first.index
        for token in range(full.unit_starts[unit], full.unit_starts[unit + 1])
    ]
    assert np.diff(sparse.positions).min() > 0


def test_the_end_of_a_short_prompt_is_no_signature_line() -> None:
    b = Builder()
    file = b.file("a.py")
    f = b.define("a.py::f", file, header=10, body=(10,))
    g = b.define("a.py::g", file, header=10, body=())
    b.link(f.units[1], "a.py::g")
    b.unit(b"Go.\n", UnitKind.REQUEST, section=Section.REQUEST)
    full = with_lines(by_bytes(b.build()), ByteTokenizer())
    pinned = {unit for pin in collect(full.document, full).pins for unit in pin.units}
    assert g.header in pinned  # the last 64 tokens are the whole code here
    assert not any(full.document.units[unit].section is Section.SIGNATURES for unit in pinned)
