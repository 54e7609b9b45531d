"""Cleaning, path mapping, and what must hold for any bytes."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctx.prompt import TestRef
from agentctx.repo.logs import read_logs
from agentctx.repo.logs.clean import Cleaning, clean_lines
from agentctx.repo.logs.mentions import identifiers
from agentctx.repo.logs.nodeid import parse_node_id, parse_title
from agentctx.repo.logs.paths import PathMap

FAILURE = b"""\
=================================== FAILURES ===================================
____________________________________ test_a ____________________________________
tests/test_a.py:3: in test_a
    assert compute_total() == 1
E   assert 2 == 1
=========================== short test summary info ============================
FAILED tests/test_a.py::test_a - assert 2 == 1
"""


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        (b"\x1b[31mred\x1b[0m\x1b]8;;http://x\x07link\x1b]8;;\x07\n", ["redlink"]),
        (b"a\r\nb\r\r\nc\r\n", ["a", "b", "c"]),
        (b" 10%\r 50%\r100% done\nnext\n", ["100% done", "next"]),
        (b"2024-05-01T12:00:00.123Z ##[error]boom\n", ["boom"]),
        (b"build\tTest\t2024-05-01T12:00:00Z E   x\n", ["E   x"]),
        (b"[2024-05-01T12:00:00.123Z] E   x\n", ["E   x"]),
        (b"2024-05-01T12:00:00.123456Z 01O text\n", ["text"]),
        (b"section_start:1714:tests\r\x1b[0KRunning\n", ["Running"]),
        (b"#12 3.456 E   x\n", ["E   x"]),
        ("\ufeffgrün".encode(), ["grün"]),
        ("grün ok".encode("latin-1") + b"\nna\xc3\xafve", ["grün ok", "naïve"]),
        ("E   \u4e2d\u6587\n".encode("utf-16"), ["E   \u4e2d\u6587"]),
        (
            "FAILED tests/test_a.py::test_a without a mark\n".encode("utf-16-le"),
            ["FAILED tests/test_a.py::test_a without a mark"],
        ),
        (
            "FAILED tests/test_a.py::test_a without a mark\n".encode("utf-16-be"),
            ["FAILED tests/test_a.py::test_a without a mark"],
        ),
        (b"[12:34:56] E   x\n[12:34:57] E   y\n", ["E   x", "E   y"]),
        (b"[12:34:56]W:\t [Step 1/3] E   x\n", ["E   x"]),
        (b"12:34:56 E   x\n12:34:56 FAILED\n", ["E   x", "FAILED"]),
        (b"2024-05-01 12:00:00,123 E   x\n", ["E   x"]),
        (b"May  1 12:00:00 host ci[77]: E   x\n", ["E   x"]),
        (b"[test:L12:3s] E   x\n", ["E   x"]),
        (b"one\n[12:34:56] of many\ntwo\nthree\n", ["one", "[12:34:56] of many", "two", "three"]),
        (b"travis_fold:start:x\r\x1b[0KE   x\n", ["E   x"]),
        (b"::error file=a.py,line=3::boom\n", ["::error file=a.py,line=3::boom"]),
        (b"::error::boom\n", ["boom"]),
        ("a\x85b\u2028c\n".encode(), ["a\u2026b\u2026c"]),
        (b"a\x00b\x08c", ["abc"]),
        (b"no newline", ["no newline"]),
        (b"a\n\nb\n", ["a", "", "b"]),
    ],
)
def test_cleaning(raw: bytes, lines: list[str]) -> None:
    cleaned = list(clean_lines(raw, Cleaning()))
    assert [line for line in cleaned if line or "" in lines] == lines


def test_chunks_do_not_show() -> None:
    lines = [f"line {i} " + "x" * (i % 97) for i in range(60_000)]
    raw = "\n".join(lines).encode()
    assert len(raw) > 3 << 20
    assert list(clean_lines(raw, Cleaning())) == lines


def test_overlong_lines_are_cut_and_counted() -> None:
    cleaning = Cleaning()
    raw = b"x" * 3_000_000 + b"\nafter\n" + b"p" * 2_000_000 + b"\rlast\n" + b"y" * 5_000 + b"\nend\n"
    lines = list(clean_lines(raw, cleaning))
    assert [line[:5] for line in lines] == ["xxxxx", "after", "last", "yyyyy", "end"]
    assert max(map(len, lines)) < 4_100
    assert cleaning.long_lines == 4  # the endless one is cut twice


REPO = [
    "src/click/core.py",
    "src/click/types.py",
    "tests/test_core.py",
    "tests/conftest.py",
    "examples/conftest.py",
    "pkg/json/decoder.py",
    "setup.py",
    "a/b/mod.py",
    "b/mod.py",
    "web/cart.ts",
    "web/row.ts",
]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("src/click/core.py", "src/click/core.py"),
        ("./src/click/../click/core.py", "src/click/core.py"),
        ("../src/click/core.py", "src/click/core.py"),
        ("/home/me/click/src/click/core.py", "src/click/core.py"),
        ("/app/tests/test_core.py", "tests/test_core.py"),
        (r"C:\work\click\src\click\core.py", "src/click/core.py"),
        (r"src\click\core.py", "src/click/core.py"),
        (r"c:\WORK\Click\Src\Click\Core.py", "src/click/core.py"),
        (r"\\?\C:\work\click\src\click\core.py", "src/click/core.py"),
        (r"\\server\share\click\src\click\core.py", "src/click/core.py"),
        (r"\\?\UNC\server\share\src\click\core.py", "src/click/core.py"),
        ("file:///home/me/my%20click/src/click/core.py", "src/click/core.py"),
        ("file:///C:/code/src/click/core.py", "src/click/core.py"),
        ("/private/tmp/x/src/click/core.py", "src/click/core.py"),
        ("/builds/group/click/src/click/core.py", "src/click/core.py"),
        ("/workspace/src/click/types.py", "src/click/types.py"),
        ("build/lib/click/types.py", "src/click/types.py"),
        ("webpack:///./web/cart.ts", "web/cart.ts"),
        ("webpack-internal:///(rsc)/./web/cart.ts", "web/cart.ts"),
        ("http://localhost:3000/web/cart.ts?t=1714:12", "web/cart.ts"),
        ("/SRC/CLICK/CORE.PY", None),  # case tells on other systems
        ("dist/other.js", None),
        ("/venv/lib/python3.12/site-packages/click/core.py", "src/click/core.py"),
        ("/usr/lib/python3/dist-packages/click/types.py", "src/click/types.py"),
        ("/build/click/core.py", "src/click/core.py"),
        ("test_core.py", "tests/test_core.py"),
        ("/repo/setup.py", "setup.py"),
        ("/x/a/b/mod.py", "a/b/mod.py"),
        ("/x/y/b/mod.py", None),  # the end of both
        ("conftest.py", None),
        ("/venv/lib/python3.12/site-packages/other/core.py", None),
        ("/venv/lib/python3.12/site-packages/other/tests/test_core.py", None),
        ("/usr/lib/python3.12/json/decoder.py", None),
        ("lib/python3.11/asyncio/types.py", None),
        ("<frozen importlib._bootstrap>", None),
        ("/somewhere/else/core.py", None),
        ("", None),
    ],
)
def test_paths(written: str, expected: str | None) -> None:
    place = PathMap(REPO).locate(written)
    assert (place.path, place.in_repo) == ((expected, True) if expected else (written, False))


def test_a_built_file_may_come_from_a_source() -> None:
    place = PathMap(["src/shop/cart.ts", "src/shop/row.ts", "lib/row.ts"]).locate("/app/dist/shop/cart.js")
    assert (place.path, place.in_repo, place.maybe) == ("/app/dist/shop/cart.js", False, "src/shop/cart.ts")
    assert PathMap(["a/row.ts", "b/row.ts"]).locate("dist/row.js").maybe is None
    log = b"Error: no\n    at f (/app/dist/shop/cart.js:3:4)\n    at g (/app/src/main.js:3:4)\n"
    notes = read_logs([("log", log)], ["src/shop/cart.ts", "src/main.js"]).notes
    assert [note for note in notes if "/app/dist/shop/cart.js may be built from src/shop/cart.ts" in note]


def test_rivals_are_named() -> None:
    assert PathMap(REPO).locate("conftest.py").rivals == ("examples/conftest.py", "tests/conftest.py")


@pytest.mark.parametrize(
    ("text", "path", "names", "param"),
    [
        ("t/a.py::test_x", "t/a.py", ("test_x",), None),
        ("t/a.py::TestA::test_x - E: a [b] - c", "t/a.py", ("TestA", "test_x"), None),
        ("t/a.py::test_x[a b] - E: [1]", "t/a.py", ("test_x",), "a b"),
        ("t/a.py::test_x[a[0]]", "t/a.py", ("test_x",), "a[0]"),
        ("t/a.py::test_x[::1]", "t/a.py", ("test_x",), "::1"),
        ("t/a.py::test_x[[a] - b] - E: [1]", "t/a.py", ("test_x",), "[a] - b"),
        ("t/a.py::test_x[]", "t/a.py", ("test_x",), ""),
        ("my t/a b.py::test_x", "my t/a b.py", ("test_x",), None),
        ("t/a.py::TestA::()::test_x", "t/a.py", ("TestA", "test_x"), None),
        ("t/a.py - ImportError: no", "t/a.py", (), None),
        ("README.md::README.md", "README.md", ("README.md",), None),
    ],
)
def test_node_ids(text: str, path: str, names: tuple[str, ...], param: str | None) -> None:
    test = parse_node_id(0, text)
    assert test is not None
    assert (test.path, test.names, test.param) == (path, names, param)


def test_a_title_decides_where_a_parameter_ends() -> None:
    text = "t/a.py::test_x[a] - b] - assert [1] - [2]"
    assert parse_node_id(0, text).param == "a"  # type: ignore[union-attr]
    titles = {(("test_x",), "a] - b")}
    assert parse_node_id(0, text, titles).param == "a] - b"  # type: ignore[union-attr]


def test_words_are_no_node_id() -> None:
    assert parse_node_id(0, "something bad happened") is None
    assert parse_title(0, "[doctest] pkg.mod")[1] is None


def test_identifiers_in_prose_and_code() -> None:
    prose = (
        "AttributeError: 'Spec' object has no attribute 'is_subset'; jinja2.env.Environment compute() HTTPError word"
    )
    assert list(identifiers([prose])) == ["Spec", "is_subset", "Environment", "env", "jinja2", "compute", "HTTPError"]
    assert list(identifiers(["    for x1 in total(self.rows, 'text', None):"], code=True)) == ["x1", "total", "rows"]


def test_the_order_of_mentions() -> None:
    evidence = read_logs([("log", FAILURE)], ["tests/test_a.py"])
    assert evidence.mentions == ("test_a", "compute_total")
    assert evidence.failing == (TestRef("tests/test_a.py", ("test_a",)),)


def test_captured_output_keeps_its_end() -> None:
    captured = b"".join(b"out %d\n" % i for i in range(500))
    log = FAILURE.replace(b"E   assert 2 == 1\n", b"E   assert 2 == 1\n---- Captured stdout call ----\n" + captured)
    lines = read_logs([("log", log)], ["tests/test_a.py"]).excerpt.splitlines()
    assert lines[-1] == "out 499"
    assert "out 469" not in lines
    assert "Captured stdout call:" in lines
    assert "E   assert 2 == 1" in lines


def test_many_failures_fit_the_excerpt() -> None:
    parts = [b"== FAILURES ==\n"]
    for i in range(300):
        parts.append(b"_____ test_%d _____\n" % i + b"    filler()\n" * 50)
        parts.append(b"E   ValueError: number %d\ntests/test_a.py:%d: ValueError\n" % (i, i + 1))
    parts.append(b"== short test summary info ==\n")
    parts += [b"FAILED tests/test_a.py::test_%d - ValueError\n" % i for i in range(300)]
    evidence = read_logs([("log", b"".join(parts))], ["tests/test_a.py"])
    assert len(evidence.failing) == 300
    assert len(evidence.error_lines) == 300
    assert 12_000 < len(evidence.excerpt.encode()) <= 16_000
    assert "E   ValueError: number 0" in evidence.excerpt
    assert "more failures left out: tests/test_a.py::test_" in evidence.excerpt
    assert [note for note in evidence.notes if "the excerpt was cut to 16000 bytes" in note]


def test_a_huge_log_is_streamed() -> None:
    noise = b"2024-05-01T12:00:00.1234567Z INFO app.web:77 handled request 12345 in 3.4 ms with status=200\n"
    log = noise * 60_000 + FAILURE + noise * 60_000
    started = time.monotonic()
    evidence = read_logs([("log", log)], ["tests/test_a.py"])
    assert time.monotonic() - started < 5
    assert [test.id for test in evidence.failing] == ["tests/test_a.py::test_a"]
    assert len(evidence.text) <= 200_000
    assert [note for note in evidence.notes if "only the last 200000 characters" in note]
    assert "handled request" not in evidence.excerpt


def test_the_same_bytes_give_the_same_evidence() -> None:
    log = FAILURE + b"src/x.py:3: warning\n"
    assert read_logs([("log", log)], ["b.py", "tests/test_a.py"]) == read_logs(
        [("log", log)], ["tests/test_a.py", "b.py"]
    )


def test_binary_is_said() -> None:
    notes = read_logs([("core", bytes(range(256)) * 100)], []).notes
    assert [note for note in notes if note.startswith("core: looks binary")]
    assert [note for note in notes if "no known failure format" in note]


PIECES = st.sampled_from(
    [
        *FAILURE.splitlines(keepends=True),
        b"Traceback (most recent call last):\n",
        b'  File "tests/test_a.py", line 3, in f\n',
        b"  + Exception Group Traceback (most recent call last):\n",
        b"  | ValueError: x\n",
        b"_ _ _ _ _\n",
        b"____ ]x[ ____\n",
        b"FAILED ::\n",
        b"FAILED a.py::t[\n",
        b"ERROR a/b - ] - x\n",
        b"a::b FAILED\n",
        b"---- Captured log ----\n",
        b"E\n",
        b"\xff\xfe\x00",
        b"\r",
        b"x.py:99999999999999999999: in y\n",
        b'File "x", line 0, in y\n',
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(PIECES, st.binary(max_size=30)), max_size=30))
def test_never_raises(pieces: list[bytes]) -> None:
    evidence = read_logs([("log", b"".join(pieces))], ["tests/test_a.py", "a.py"])
    assert len(evidence.excerpt.encode()) <= 16_100
    assert len(set(evidence.failing)) == len(evidence.failing)
    assert all("\x1b" not in line for line in evidence.error_lines)
