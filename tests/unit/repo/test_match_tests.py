"""Names that tools give tests -> symbols, per language."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import pytest

from agentctx.prompt import TestRef
from agentctx.repo.graph import build_graph
from agentctx.repo.languages import is_test_path, language_of
from agentctx.repo.match_tests import TestNames
from agentctx.repo.parse import parse
from agentctx.source import RepoGraph, SourceFile

FILES = {
    "test/cart.test.js": """\
describe('Cart', () => {
  it('sums counts', () => {});
  describe('rows', () => {
    it('keeps "quoted" names > and more', () => {});
  });
  it(`has ${n} rows`, () => {});
});
test.each([1])('parses %s as %d', (a, b) => {});
""",
    "test/row.test.js": "it('sums counts', () => {});\nit('only here', () => {});\n",
    "pkg/cart_test.go": 'package cart\n\nfunc TestTotal(t *testing.T) {\n\tt.Run("x", f)\n}\n',
    "pkg/row_test.go": "package row\n\nfunc TestTotal(t *testing.T) {\n}\n",
    "src/price.rs": "#[cfg(test)]\nmod tests {\n    #[test]\n    fn it_works() {}\n}\n",
    "src/row.rs": "#[cfg(test)]\nmod tests {\n    #[test]\n    fn it_works() {}\n}\n",
    "src/test/java/com/x/FooTest.java": (
        "package com.x;\n\nclass FooTest {\n  @Test\n  void bar() {}\n\n  @Test\n  void baz(int n) {}\n}\n"
    ),
    "src/test/java/com/y/FooTest.java": "package com.y;\n\nclass FooTest {\n  @Test\n  void bar() {}\n}\n",
    "spec/cart_spec.rb": (
        "RSpec.describe Cart do\n  context 'when empty' do\n    it 'is free' do\n    end\n  end\nend\n"
    ),
    "tests/test_cart.py": "class TestCart:\n    def test_total(self):\n        pass\n",
    "tests/test_row.py": "def test_row():\n    pass\n",
    "src/price.py": "def parse():\n    pass\n",
}


def graph_of(files: Mapping[str, str]) -> RepoGraph:
    return build_graph([parse(_file(path, text.encode())) for path, text in files.items()])


def _file(path: str, data: bytes) -> SourceFile:
    return SourceFile(path, data, hashlib.sha256(data).hexdigest(), language_of(path), is_test_path(path))


@pytest.fixture(scope="module")
def names() -> TestNames:
    return TestNames(graph_of(FILES))


@pytest.mark.parametrize(
    ("path", "chain", "found"),
    [
        ("test/cart.test.js", ("Cart", "sums counts"), ["test/cart.test.js::Cart.sums counts"]),
        ("test/cart.test.js", ("Cart sums counts",), ["test/cart.test.js::Cart.sums counts"]),
        ("test/cart.test.js", ("sums counts",), ["test/cart.test.js::Cart.sums counts"]),
        ("", ("Cart sums counts",), ["test/cart.test.js::Cart.sums counts"]),
        ("", ("sums counts",), ["test/row.test.js::sums counts"]),  # the whole chain before the end of one
        ("", ("only here",), ["test/row.test.js::only here"]),
        ("test/row.test.js", ("Rows", "only here"), ["test/row.test.js::only here"]),
        (
            "test/cart.test.js",
            ("Cart", "rows", 'keeps "quoted" names', "and more"),
            ['test/cart.test.js::Cart.rows.keeps "quoted" names > and more'],
        ),
        ("test/cart.test.js", ("Cart", "has 12 rows"), ["test/cart.test.js::Cart.has ${n} rows"]),
        ("test/cart.test.js", ("parses 1.50 as 150",), ["test/cart.test.js::parses %s as %d"]),
        ("test/cart.test.js", ("parses nothing",), []),
        ("pkg/cart_test.go", ("TestTotal", "two_rows"), ["pkg/cart_test.go::TestTotal"]),
        ("pkg/cart_test.go", ("TestTotal/two_rows",), ["pkg/cart_test.go::TestTotal"]),
        ("", ("TestTotal",), ["pkg/cart_test.go::TestTotal", "pkg/row_test.go::TestTotal"]),
        ("", ("price", "tests", "it_works"), ["src/price.rs::tests.it_works"]),
        ("", ("price::tests::it_works",), ["src/price.rs::tests.it_works"]),
        ("", ("com.x.FooTest", "bar"), ["src/test/java/com/x/FooTest.java::FooTest.bar"]),
        ("", ("com.y.FooTest#bar",), ["src/test/java/com/y/FooTest.java::FooTest.bar"]),
        ("", ("com.x.FooTest", "baz(int)[1]"), ["src/test/java/com/x/FooTest.java::FooTest.baz"]),
        ("spec/cart_spec.rb", ("Cart when empty is free",), ["spec/cart_spec.rb::Cart.when empty.is free"]),
        ("tests/test_cart.py", ("TestCart", "test_total"), ["tests/test_cart.py::TestCart.test_total"]),
        ("tests/test_cart.py", ("test_total",), ["tests/test_cart.py::TestCart.test_total"]),
        ("tests/test_cart.py", ("test_row",), []),  # pytest knows where a test is
        ("tests/gone.py", ("test_row",), []),
        ("src/price.py", ("price.parse",), ["src/price.py::parse"]),  # a doctest
        ("", ("nothing like it",), []),
        ("", (), []),
    ],
)
def test_names(names: TestNames, path: str, chain: tuple[str, ...], found: list[str]) -> None:
    assert list(names.find(TestRef(path, chain))) == found


def test_too_many_that_fit_say_nothing() -> None:
    files = {f"p{i}/x_test.go": "package x\n\nfunc TestA(t *testing.T) {\n}\n" for i in range(4)}
    assert TestNames(graph_of(files)).find(TestRef("", ("TestA",))) == ()
