"""Units over real code (the standard library) and over code that somebody is in the middle of typing."""

from __future__ import annotations

import sysconfig
from functools import cache
from pathlib import Path
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentctx.repo.parse import parse
from agentctx.source import FileSyntax, SourceFile
from tests.unit_checks import check_kept, check_units, source

LIBRARY = Path(sysconfig.get_path("stdlib"))
SMALL = ("abc", "bdb", "cmd", "code", "copy", "csv", "heapq", "json/decoder", "numbers", "this", "trace", "uuid")
MODULES = (
    *SMALL,
    *("argparse", "ast", "contextlib", "dataclasses", "enum", "functools", "inspect", "logging/__init__", "optparse"),
    *("random", "re/_parser", "shutil", "ssl", "tarfile", "textwrap", "tokenize", "typing", "unittest/mock"),
)

relaxed = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@cache
def library(name: str, endings: bytes = b"\n") -> tuple[SourceFile, FileSyntax]:
    path = next(p for p in (LIBRARY / f"{name}.py", LIBRARY / name / "__init__.py") if p.is_file())
    file = source(f"{name}.py", path.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", endings))
    return file, parse(file)


def test_units_of_the_standard_library() -> None:
    for name in MODULES:
        file, syntax = library(name)
        assert syntax.n_errors == 0
        check_units(file, syntax)
        check_kept(file, syntax, [])
        check_kept(file, syntax, range(0, len(syntax.units), 3))


@relaxed
@given(st.sampled_from(MODULES), st.integers(0, 2**32), st.floats(0, 1), st.sampled_from([b"\n", b"\r\n"]))
def test_what_is_kept_parses(name: str, seed: int, share: float, endings: bytes) -> None:
    file, syntax = library(name, endings)
    random = Random(seed)
    chosen = [unit.index for unit in syntax.units if random.random() < share]
    check_kept(file, syntax, chosen)


@relaxed
@given(
    st.sampled_from(SMALL),
    st.lists(
        st.tuples(
            st.floats(0, 1),
            st.integers(0, 80),
            st.sampled_from([b"", b"(", b'"""', b"def ", b":", b"\n  ", b"}", b"\xff", b"\0", b"\\", b"\r", b"\x0c"]),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_broken_code_still_has_units(name: str, edits: list[tuple[float, int, bytes]]) -> None:
    data = library(name)[0].data
    for where, n_deleted, inserted in edits:
        at = int(where * len(data))
        data = data[:at] + inserted + data[at + n_deleted :]
    file = source("broken.py", data)
    syntax = parse(file)
    check_tiling(file, syntax)


@relaxed
@given(st.text(alphabet="ab():=\"'#\\\n\r\t\x0c @,[]{}*é", max_size=200), st.sampled_from(["a.py", "a.md", "a.json"]))
def test_any_text_has_units(text: str, path: str) -> None:
    file = source(path, text)
    check_tiling(file, parse(file))


def check_tiling(file: SourceFile, syntax: FileSyntax) -> None:
    """All of `check_units` but the names: in broken code a name may hold undecodable bytes."""
    check_units(file, FileSyntax(file.path, file.language, file.digest, syntax.units, syntax.symbols))


def test_deep_nesting() -> None:
    for text in ("(" * 20_000 + ")" * 20_000, "x = " + "1+" * 20_000 + "1\n", "a" + ".b()" * 3000, "[" * 3000):
        file = source("deep.py", text)
        check_units(file, parse(file))
    blocks = "".join(" " * depth + "if x:\n" for depth in range(95)) + " " * 95 + "pass\n"
    file = source("deep.py", blocks)
    syntax = parse(file)
    check_units(file, syntax)
    check_kept(file, syntax, [len(syntax.units) - 1])
