"""The syntax cache: equal results, and every kind of damage is a miss and a note."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from agentctx.errors import UsageError
from agentctx.repo.cache import SyntaxCache, key_of
from agentctx.repo.index import index
from agentctx.repo.parse import parse
from agentctx.repo.syntax_codec import decode, encode
from agentctx.source import FileSyntax, SourceFile
from tests.casefile import CASES, read_case
from tests.unit_checks import source

ROOT = Path(__file__).parents[3]


def case_files() -> Iterator[SourceFile]:
    for path in sorted((CASES / "units").glob("*.md")):
        yield from (source(name, text) for name, text in read_case(path).files.items())


FILES = tuple(case_files())


@pytest.fixture
def cache(tmp_path: Path) -> SyntaxCache:
    return SyntaxCache(tmp_path / "deep" / "syntax.db", busy_seconds=0.05)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.path)
def test_decoding_gives_what_was_encoded(file: SourceFile) -> None:
    syntax = parse(file)
    assert decode(encode(syntax), file) == syntax


def test_warm_equals_cold(cache: SyntaxCache) -> None:
    cold, warm = index(FILES, cache), index(FILES, cache)
    assert (cold.hits, cold.misses, cold.notes) == (0, len(FILES), ())
    assert (warm.hits, warm.misses, warm.notes) == (len(FILES), 0, ())
    assert warm.syntax == cold.syntax == index(FILES).syntax == tuple(parse(file) for file in FILES)


def test_a_moved_file_is_a_hit_and_knows_its_new_path(cache: SyntaxCache) -> None:
    old, new = source("a.py", "def f(): return g()\n"), source("b/c.py", "def f(): return g()\n")
    index([old], cache)
    result = index([new], cache)
    assert result.hits == 1
    assert result.syntax == (parse(new),)
    assert result.syntax[0].symbols[0].id == "b/c.py::f"


def test_keys_hold_what_parsing_depends_on() -> None:
    file = source("a.py", "def test_a(): pass\n")
    others = [
        replace(file, digest="0" * 64),
        replace(file, is_test=True),
        replace(file, language=None),
        replace(file, path="a.md", language=None),
    ]
    assert len({key_of(other) for other in [file, *others]}) == 5
    assert key_of(replace(file, path="b.py")) == key_of(file)


def test_only_changed_files_are_parsed(cache: SyntaxCache) -> None:
    index(FILES, cache)
    at = next(number for number, file in enumerate(FILES) if file.language == "python")
    changed = [*FILES[:at], source(FILES[at].path, "changed = 1\n"), *FILES[at + 1 :]]
    result = index(changed, cache)
    assert (result.hits, result.misses) == (len(FILES) - 1, 1)
    assert result.syntax[at].symbols[0].name == "changed"


@pytest.mark.parametrize("damage", [b"", b"no database at all" * 100, None])
def test_a_damaged_file_is_replaced(cache: SyntaxCache, damage: bytes | None) -> None:
    index(FILES, cache)
    if damage is None:
        data = cache.path.read_bytes()
        cache.path.write_bytes(data[:4096] + b"\x07" * (len(data) - 4096))
    else:
        cache.path.write_bytes(damage)
    result = index(FILES, cache)
    assert result.misses == len(FILES)
    assert result.syntax == index(FILES).syntax
    assert damage == b"" or any("not used" in note for note in result.notes)
    again = index(FILES, cache)
    assert (again.hits, again.notes) == (len(FILES), ())


@pytest.mark.parametrize("value", [b"junk", encode(parse(FILES[0]))[:-9], b""])
def test_a_damaged_entry_is_parsed_anew(cache: SyntaxCache, value: bytes) -> None:
    index(FILES, cache)
    with closing(sqlite3.connect(cache.path, isolation_level=None)) as db:
        db.execute("UPDATE syntax SET value = ? WHERE key = ?", (value, key_of(FILES[0])))
    result = index(FILES, cache)
    assert (result.misses, result.syntax) == (1, index(FILES).syntax)
    assert "1 damaged entries" in result.notes[0]
    assert index(FILES, cache).notes == ()


def test_a_locked_cache_is_read_but_not_written(cache: SyntaxCache) -> None:
    index(FILES[1:], cache)
    with closing(sqlite3.connect(cache.path, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        result = index(FILES, cache)
        db.execute("ROLLBACK")
    assert (result.hits, result.misses) == (len(FILES) - 1, 1)
    assert "locked" in result.notes[0]
    assert index(FILES, cache).misses == 1


def test_a_folder_in_the_way_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "cache.db", tmp_path):
        result = index(FILES, SyntaxCache(path))
        assert result.misses == len(FILES)
        assert str(path) in result.notes[0]


LIMITED = """
import resource, signal, sys
from pathlib import Path
from agentctx.repo.cache import SyntaxCache
from agentctx.repo.index import index
from tests.unit.repo.test_cache import FILES
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
result = index(FILES, SyntaxCache(Path(sys.argv[1])))
sys.stdout.write(f"{result.misses} {result.notes}")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit of file sizes")
def test_a_full_disk_is_a_note(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "c.db")]
    out = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert out.startswith(f"{len(FILES)} ('the syntax cache")
    assert "was not used" in out


BOTH = """
import sys
from pathlib import Path
from agentctx.repo.cache import SyntaxCache
from agentctx.repo.index import index
from tests.unit_checks import source
files = [source(f"a{i}.py", f"x = {i}\\n") for i in range(40)]
for i in range(40):
    result = index(files[i:], SyntaxCache(Path(sys.argv[1]), busy_seconds=20))
    assert result.notes == (), result.notes
    assert [s.path for s in result.syntax] == [f.path for f in files[i:]]
"""


def test_two_processes_share_one_cache(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BOTH, str(tmp_path / "c.db")]
    both = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    errors = [process.communicate(timeout=60)[1] for process in both]
    assert [(process.returncode, error) for process, error in zip(both, errors, strict=True)] == [(0, "")] * 2
    assert SyntaxCache(tmp_path / "c.db").show().entries == 40


def test_show_and_clear(cache: SyntaxCache, tmp_path: Path) -> None:
    assert (cache.show().entries, cache.show().n_bytes) == (0, 0)
    index(FILES, cache)
    held = cache.clear()
    assert held.entries == len({key_of(file) for file in FILES})
    assert held.n_bytes > 1000
    assert list(cache.path.parent.iterdir()) == []
    folder = SyntaxCache(tmp_path)
    assert str(tmp_path) in folder.show().notes[0]
    with pytest.raises(UsageError, match="can't remove"):
        folder.clear()


def test_what_is_used_longest_ago_goes_first(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    texts = {root: "".join(f"name_{root}_{n} = {n}\n" for n in range(300)) for root in "abc"}
    files = {root: [source(f"{root}{i}.py", f"# {i}\n{texts[root]}") for i in range(20)] for root in "abc"}
    for root in "abc":
        index(files[root], SyntaxCache(path, root=root))
    size = SyntaxCache(path).show().n_bytes
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE owners SET used = 1000 * (unicode(root) - 96)")
    assert index(files["a"], SyntaxCache(path, root="a")).hits == 20  # used again, after a long time
    index([source("d.py", "x = 1\n")], SyntaxCache(path, root="d", max_bytes=int(size * 0.95)))
    assert [len(SyntaxCache(path).get(files[root]).syntax) for root in "abc"] == [20, 0, 20]


def test_one_repository_alone_forgets_its_older_half(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    files = [source(f"a{i}.py", "".join(f"name_{i}_{j} = {j}\n" for j in range(300))) for i in range(20)]
    index(files, SyntaxCache(path))
    size = SyntaxCache(path).show().n_bytes
    result = index([source("new.py", "x = 1\n")], SyntaxCache(path, max_bytes=int(size * 0.8)))
    assert result.notes == ()
    hits = [len(SyntaxCache(path).get([file]).syntax) for file in files]
    assert hits[0] == 0
    assert hits[-1] == 1


def test_a_process_that_lives_on_parses_only_what_changed() -> None:
    one, two = source("a.py", b"x = 1\n"), source("b.py", b"def f():\n    pass\n")
    memory: dict[str, FileSyntax] = {}
    first = index([one, two], None, memory)
    assert (first.hits, first.misses) == (0, 2)
    again = index([two, one], None, memory)
    assert (again.hits, again.misses) == (2, 0)
    assert again.syntax[0] is first.syntax[1]
    changed = source("a.py", b"x = 2\ny = 3\n")
    third = index([changed], None, memory)
    assert (third.hits, third.misses) == (0, 1)
    assert [symbol.name for symbol in third.syntax[0].symbols] == ["x", "y"]
    assert set(memory) == {"a.py"}  # what is gone is forgotten
