"""The language table: names of files, tests, what is told by content; rewrites keep every byte's place."""

from __future__ import annotations

import tracemalloc

import pytest

from agentctx.bench.fuzz.files import wrong_units
from agentctx.repo import languages, trees
from agentctx.repo.comment_lines import CommentLines
from agentctx.repo.languages import comment_of, is_test_path, language_in, language_of
from agentctx.repo.parse import parse
from agentctx.repo.rewrites import bats_functions, without_macros
from agentctx.repo.trees import readable, tree_of
from tests.unit_checks import check_kept, check_units, n_errors, source


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("a.mjs", "javascript"),
        ("a.jsx", "javascript"),
        ("a.d.mts", "typescript"),
        ("a.TSX", "tsx"),
        ("src/a.h", "c"),
        ("a.hh", "cpp"),
        ("Rakefile", "ruby"),
        ("a.gemspec", "ruby"),
        ("build.gradle.kts", "kotlin"),
        ("build.sbt", "scala"),
        ("test/a.bats", "bash"),
        (".zshrc", "bash"),
        ("a.phtml", "php"),
        ("a.csx", "csharp"),
        ("a.md", None),
    ],
)
def test_names(path: str, language: str | None) -> None:
    assert language_of(path) == language
    if language is not None:
        assert comment_of(path) == languages.LANGUAGES[language].comment


@pytest.mark.parametrize(
    ("path", "is_test"),
    [
        ("pkg/a_test.go", True),
        ("pkg/testing.go", False),
        ("src/a.test.ts", True),
        ("src/a.spec.jsx", True),
        ("src/__tests__/a.js", True),
        ("src/latest.ts", False),
        ("src/test/java/a/Helper.java", True),
        ("src/main/java/a/StoreTest.java", True),
        ("src/main/java/a/Contest.java", False),
        ("tests/it.rs", True),
        ("src/lib.rs", False),
        ("spec/a_spec.rb", True),
        ("lib/a_test.rb", True),
        ("src/StoreTest.php", True),
        ("Store.Tests/StoreTests.cs", True),
        ("src/Attests.cs", False),
        ("test/a.c", True),
        ("src/a_test.cc", True),
        ("src/StoreSpec.scala", True),
        ("x/a.bats", True),
        ("x/run.sh", False),
    ],
)
def test_test_files(path: str, is_test: bool) -> None:
    assert is_test_path(path) == is_test


@pytest.mark.parametrize(
    ("path", "text", "language"),
    [
        ("a.h", b"int f(void);\n", "c"),
        ("a.h", b"/* class A { */\nstruct class_list { int namespace; };\n", "c"),
        ("a.h", b"namespace a {\n", "cpp"),
        ("a.h", b"#include <string>\n", "cpp"),
        ("a.h", b"  template <typename T>\n", "cpp"),
        ("a.h", b"class A : public B {\n", "cpp"),
        ("bin/a", b"#!/usr/bin/env bash\n", "bash"),
        ("bin/a", b"#!/bin/sh -e\n", "bash"),
        ("bin/a", b"#!/usr/bin/env -S ruby -w\n", "ruby"),
        ("bin/a", b"#!/usr/bin/python3.12\n", "python"),
        ("bin/a", b"#!/usr/bin/env node\n", None),  # its comments are not those of text
        ("bin/a", b"#!/usr/bin/awk -f\n", None),
        ("a.txt", b"#!/bin/sh\n", None),
    ],
)
def test_told_by_content(path: str, text: bytes, language: str | None) -> None:
    assert language_in(path, language_of(path), text) == language
    assert parse(source(path, text)).language == language


@pytest.mark.parametrize(
    "text",
    [
        b"NS_BEGIN\nnamespace a {\n}\nNS_END\n",
        b"class API_EXPORT Q : public R {\n  void f();\n};\n",
        b"API_INLINE void log(int x) NOEXCEPT { }\n",
        b'DEPRECATED("use g") API static int f();\n',
        b"struct A {\n  Q_OBJECT\n  int x;\n};\n",
    ],
)
def test_macros_before_declarations(text: bytes) -> None:
    assert n_errors(text, "cpp") == 0
    assert len(without_macros(text)) == len(text)


def test_code_without_macros_stays_as_it_is() -> None:
    text = b"static const DWORD SIZE = MAX_SIZE;\nHANDLE open(LPCSTR name);\nint f() { return FLAG | OTHER; }\n"
    assert without_macros(text) == text
    assert tree_of(text, "cpp")[1] is text


def test_bats() -> None:
    text = b'@test "a {b}" {\n  run x\n}\n@test plain_name {\n}\n'
    assert len(bats_functions(text)) == len(text)
    syntax = parse(source("a.bats", text))
    assert [(s.name, s.is_test, s.lines.end) for s in syntax.symbols] == [("a {b}", True, 3), ("plain_name", True, 5)]


def test_bytes_that_are_no_utf8_keep_their_place() -> None:
    text = b'void caf\xe9() {\n  f("\xff");\n}\n'
    assert readable(text) == b'void cafx() {\n  f("x");\n}\n'
    (symbol,) = parse(source("a.c", text)).symbols
    assert symbol.name == "caf\ufffd"


def test_code_that_keeps_a_parser_busy_beyond_the_limit_is_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is lowered: what drives a parser past the real one depends on the version of its grammar."""
    file = source("a.kt", "fun a() {\n\tval s = ((a ushr 2) or (a shl 30)) xor\n" * 3)
    assert parse(file).language == "kotlin"
    monkeypatch.setattr(trees, "MAX_READS", 2)
    syntax = parse(file)
    assert (syntax.language, syntax.n_errors, syntax.symbols) == (None, 1, ())
    check_units(file, syntax)


def test_comment_lines() -> None:
    data = b"/* a\n\n b */\nf(); // c\n  // d\n/* e */ g();\n\n"
    syntax, _ = tree_of(data, "c")
    lines = CommentLines(data, [n for n in syntax.children if n.type == "comment"])
    assert [lines.is_comment(row) for row in range(7)] == [True, True, True, False, True, False, False]
    assert [lines.is_blank(row) for row in range(7)] == [False, False, False, False, False, False, True]
    assert lines.column(2) == 0
    assert lines.first_code(0, 7) == 3


def test_what_ends_an_item_of_a_case_goes_with_the_item() -> None:
    """Behind the last statement it would be left out with it, and the next item would belong to this one."""
    calls = "".join(f"\t\tcall {n}\n" for n in range(20))
    for end in (";;", ";;  # and on"):
        code = f"case $1 in\n\ta)\n{calls}\t\tif x; then\n\t\t\ty\n\t\tfi {end}\n\tb) z ;;\nesac\n"
        file = source("a.sh", code)
        syntax = parse(file)
        [item] = [unit for unit in syntax.units if unit.lines.start == 2]
        assert len(syntax.units) > 4
        kept = [syntax.units[other].span for other in item.spine]
        assert any(b"fi " + end.encode() in file.data[span.start : span.end] for span in kept)
        check_kept(file, syntax, [item.index])


def test_a_group_of_fifty_lines_is_left_out_in_parts() -> None:
    entries = "".join(f"  {{ {n}, {n} }},\n" for n in range(1000))
    syntax = parse(source("a.c", f"static const int t[][2] = {{\n{entries}}};\n"))
    assert len(syntax.units) == 2 + 1000 / 8
    assert max(len(unit.lines) for unit in syntax.units) == 8


def test_reading_a_file_often_leaves_nothing_in_memory() -> None:
    text = b"def f(a):\n    return a + 1\n" * 4000
    tree_of(text, "python")
    tracemalloc.start()
    try:
        for _ in range(10):
            tree_of(text, "python")
        assert tracemalloc.get_traced_memory()[0] < len(text)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.ts", "export namespace"),
        ("a.ts", "export enum {"),
        ("a.go", "package a\nfunc "),
        ("a.rs", "struct"),
        ("a.java", "interface {"),
        ("a.kt", "fun "),
        ("a.cs", "namespace"),
        ("a.php", "<?php class"),
        ("a.rb", "module"),
        ("a.scala", "object"),
        ("a.cpp", "namespace"),
        ("a.py", "class :\n    pass\n"),
    ],
)
def test_a_definition_whose_name_is_missing_is_none(path: str, text: str) -> None:
    """The parser puts in what is missing, of no width: it must not become a symbol behind its own header."""
    file = source(path, text)
    syntax = parse(file)
    assert wrong_units(file, syntax) == ""
    assert all(symbol.name not in ("", "?") for symbol in syntax.symbols)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.go", "package a\n\ntype T struct{}\n\nf"),
        ("c.go", 'package a\n\nport "t"\n\nfunc g() {\n\th(1)\n\n\th(2)\n\n\th(3)\n}\n'),
        ("b.kt", "typealias A = Int\n * `B`.\n */\ntypealias C = Int\n"),
    ],
)
def test_what_stands_at_the_top_by_mistake_is_kept_with_what_is_before_it(path: str, text: str) -> None:
    """Every part of it that the grammar takes must parse by itself, as the whole does."""
    file = source(path, text)
    syntax = parse(file)
    assert wrong_units(file, syntax) == ""
    for unit in syntax.units:
        kept = sorted([*unit.spine, unit.index])
        alone = b"".join(file.data[syntax.units[n].span.start : syntax.units[n].span.end] for n in kept)
        assert n_errors(alone, syntax.language or "") <= syntax.n_errors


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.go", "// A.\npackage a\n\nvar x = 1\n\nconst y = 2\n\nfunc f() {}\n"),
        ("a.kts", 'plugins {\n    id("x")\n}\n\ndependencies {\n    implementation("y")\n}\n'),
        ("a.kt", "package a\n\n@file:Suppress\n\ninternal val x = 1\n"),
    ],
)
def test_what_belongs_at_the_top_leans_on_nothing(path: str, text: str) -> None:
    assert [unit.spine for unit in parse(source(path, text)).units if unit.spine and 0 in unit.spine] == []
