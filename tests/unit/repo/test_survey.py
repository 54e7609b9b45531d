"""The stat index: what has not changed is not read, what has is; every kind of damage is a miss and a note."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from agentctx.errors import ConflictError, RepoError
from agentctx.repo import tree_cache
from agentctx.repo.catalog import Catalog
from agentctx.repo.scan import scan
from agentctx.repo.store import IndexMemory, IndexStore
from agentctx.repo.survey import Survey, survey, update
from agentctx.repo.tree_cache import TREES, TreeCache, show_trees

ROOT = Path(__file__).parents[3]
OLD = 1_000_000_000  # seconds since the epoch


def write(root: Path, files: dict[str, str | bytes], *, age: int | None = OLD) -> None:
    """`age`: the modification time. The change time can't be set: `aged` lets it be old, too."""
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        if age is not None:
            os.utime(path, (age, age))


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    subprocess.run(("git", "init", "-q", root), check=True)
    write(root, {"a.py": "def a(): return b()\n", "b.py": "def b(): pass\n", "README.md": "# b\n", "c.csv": "1,2\n"})
    return root


@pytest.fixture
def store(tmp_path: Path, repo: Path) -> IndexStore:
    return IndexStore.of(tmp_path / "cache", repo)


@pytest.fixture
def aged(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file counts as touched just now: tests can't wait until that is so."""
    monkeypatch.setattr(tree_cache, "RACY_NS", -(1 << 62))


def state(found: Survey) -> tuple[object, ...]:
    return dict(found.entries), {path: row.row for path, row in found.rows.items()}, found.skipped


def unread(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that are read from now on."""
    names: list[str] = []
    real = Path.read_bytes

    def spy(path: Path) -> bytes:
        names.append(path.name)
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", spy)
    return names


def test_a_warm_start_reads_no_file(repo: Path, store: IndexStore, aged: None, monkeypatch: pytest.MonkeyPatch) -> None:
    cold = survey(repo, store=store)
    assert (cold.n_parsed, sorted(cold.made)) == (3, ["README.md", "a.py", "b.py"])
    assert [(one.path, one.reason) for one in cold.skipped] == [("c.csv", "data, not code (.csv)")]
    read = unread(monkeypatch)
    warm = survey(repo, store=store)
    assert (warm.n_parsed, warm.notes, read) == (0, (), [])
    assert state(warm) == state(cold) == state(survey(repo))


def test_a_survey_finds_what_a_scan_finds(repo: Path, store: IndexStore) -> None:
    write(repo, {"min.js": "a" * 9000, "nul.py": b"a\0b", "big.md": "version https://git-lfs.github.com/spec/v1\n"})
    plain = scan(repo)
    for _ in range(2):
        found = survey(repo, store=store)
        assert found.skipped == plain.skipped
        assert list(found.entries) == [file.path for file in plain.files]
        assert {path: found.data[path] for path in found.entries} == {file.path: file.data for file in plain.files}


@pytest.mark.parametrize("same_time", [False, True])
def test_a_changed_file_is_read_again(repo: Path, store: IndexStore, aged: None, same_time: bool) -> None:
    """Also where the tool that wrote it kept size and modification time: the change time tells."""
    survey(repo, store=store)
    time.sleep(0.02)
    write(repo, {"a.py": "def z(): return b()\n"}, age=OLD if same_time else OLD + 5)
    found = survey(repo, store=store)
    assert found.n_parsed == 1
    assert found.data["a.py"] == b"def z(): return b()\n"
    catalog = Catalog({path: row.row for path, row in found.rows.items()})
    assert list(catalog.defining(["z", "a"])) == ["z"]


def test_a_file_touched_near_the_reading_is_not_trusted(repo: Path, store: IndexStore) -> None:
    """Two writes within one tick of the clock look the same: the row says nothing until the file is older."""
    survey(repo, store=store)
    row = store.tree.load()[0]["a.py"]
    assert not row.is_fresh(row.look)
    later = row._replace(read=row.look.ctime + tree_cache.RACY_NS + 1)
    assert later.is_fresh(row.look)
    assert not later.is_fresh(row.look._replace(size=1))
    assert not later.is_fresh(row.look._replace(inode=1))


def test_files_come_and_go(repo: Path, store: IndexStore, aged: None) -> None:
    survey(repo, store=store)
    (repo / "a.py").unlink()
    write(repo, {"new/d.py": "d = 1\n"})
    (repo / "b.py").rename(repo / "moved.py")
    found = survey(repo, store=store)
    assert list(found.entries) == ["README.md", "moved.py", "new/d.py"]
    assert found.n_parsed == 1  # moved.py has the content of b.py
    assert sorted(store.tree.load()[0]) == ["README.md", "c.csv", "moved.py", "new/d.py"]


def test_what_another_version_of_the_program_found_is_not_used(repo: Path, store: IndexStore, aged: None) -> None:
    survey(repo, store=store)
    with closing(sqlite3.connect(store.tree.path, isolation_level=None)) as db:
        db.execute("UPDATE facts SET value = 'other' WHERE name = 'stamp'")
    assert store.tree.load() == ({}, ())
    survey(repo, store=store)
    assert len(store.tree.load()[0]) == 4


def test_unsaved_buffers_hide_files_and_leave_no_trace(repo: Path, store: IndexStore, aged: None) -> None:
    before = survey(repo, store=store)
    found = survey(repo, store=store, overlay={"a.py": b"def over(): pass\n", "x/y.py": b"", "n.py": b"\0"})
    assert list(found.entries) == ["README.md", "a.py", "b.py", "x/y.py"]
    assert found.data["a.py"] == b"def over(): pass\n"
    assert [one.path for one in found.skipped] == ["c.csv", "n.py"]
    assert state(survey(repo, store=store)) == state(before)
    with pytest.raises(RepoError, match="inside of the repository"):
        survey(repo, overlay={"../a.py": b""})


def test_contents_are_those_that_were_indexed(repo: Path, store: IndexStore) -> None:
    found = survey(repo, store=store)
    assert found.data["a.py"] == b"def a(): return b()\n"
    write(repo, {"a.py": "changed\n", "b.py": "changed\n"})
    (repo / "README.md").unlink()
    assert found.data["a.py"] == b"def a(): return b()\n"  # it was read before
    with pytest.raises(ConflictError, match=r"b\.py was changed while"):
        found.data["b.py"]
    with pytest.raises(ConflictError, match=r"README\.md can't be read any more"):
        found.data["README.md"]
    with pytest.raises(KeyError):
        found.data["c.csv"]
    assert "c.csv" not in found.data
    assert len(found.data) == 3


# ---------------------------------------------------------------- processes that live on


def test_an_update_looks_only_at_what_it_is_told(repo: Path, store: IndexStore, aged: None) -> None:
    memory = IndexMemory()
    with pytest.raises(ValueError, match="nothing was surveyed"):
        update(memory, ["a.py"], store)
    survey(repo, store=store, memory=memory)
    write(
        repo,
        {"a.py": "x = 1\n", "b.py": "y = 1\n", "new.py": "z = 1\n", ".gitignore": "ignored.py\n", "ignored.py": ""},
    )
    assert update(memory, ["a.py", "new.py", "ignored.py"], store) == ()
    rows = memory.rows
    assert sorted(rows) == ["README.md", "a.py", "b.py", "c.csv", "new.py"]
    catalog = Catalog({path: row.row for path, row in rows.items() if row.entry is not None})
    assert list(catalog.defining(["x", "y", "z", "b"])) == ["b", "x", "z"]
    (repo / "a.py").unlink()
    update(memory, ["a.py"], store)
    assert "a.py" not in memory.rows
    found = survey(repo, store=store, memory=memory)
    assert state(found) == state(survey(repo))


def test_what_waits_to_be_written_is_only_read_again_when_it_is_lost(repo: Path, store: IndexStore, aged: None) -> None:
    memory = IndexMemory()
    survey(repo, store=store, memory=memory)
    write(repo, {"a.py": "x = 1\n"})
    update(memory, ["a.py"], store)
    assert sorted(memory.pending.rows) == ["a.py"]
    other = survey(repo, store=store)  # another process
    assert (list(other.made), other.data["a.py"]) == (["a.py"], b"x = 1\n")
    write(repo, {f"n{i}.py": f"x = {i}\n" for i in range(70)})
    survey(repo, store=store, memory=memory)
    assert memory.pending.rows == {}
    assert survey(repo, store=store).n_parsed == 0


def test_memory_of_another_root_is_not_used(repo: Path, tmp_path: Path) -> None:
    memory = IndexMemory()
    survey(repo, memory=memory)
    write(tmp_path / "two", {"a.py": "other = 1\n"})
    found = survey(tmp_path / "two", memory=memory)
    assert list(found.entries) == ["a.py"]
    assert found.data["a.py"] == b"other = 1\n"


# ---------------------------------------------------------------- damage


DAMAGES: dict[str, bytes | str | None] = {
    "empty": b"",
    "no database": b"no database at all" * 1000,
    "pages": None,
    "layout": "PRAGMA user_version = 99",
}


@pytest.mark.parametrize("half", ["tree", "syntax"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_is_a_miss_and_is_repaired(
    repo: Path, store: IndexStore, aged: None, half: str, damage: bytes | str | None
) -> None:
    right = state(survey(repo, store=store))
    path: Path = getattr(store, half).path
    if isinstance(damage, bytes):
        path.write_bytes(damage)
    elif isinstance(damage, str):
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute(damage)
    else:
        data = path.read_bytes()
        path.write_bytes(data[:4096] + b"\x07" * (len(data) - 4096))
    write(repo, {"new.py": "n = 1\n"})  # something to write, so that both halves are opened
    found = survey(repo, store=store)
    assert damage == b"" or any("was not used" in note or "started anew" in note for note in found.notes)
    assert state(found) == state(survey(repo))
    (repo / "new.py").unlink()
    assert state(survey(repo, store=store)) == right
    assert survey(repo, store=store).notes == ()


@pytest.mark.parametrize(("column", "value"), [("digest", "0" * 64), ("terms", b"abcd"), ("reason", "x"), ("size", 1)])
def test_a_damaged_row_is_read_again(repo: Path, store: IndexStore, aged: None, column: str, value: object) -> None:
    right = state(survey(repo, store=store))
    with closing(sqlite3.connect(store.tree.path, isolation_level=None)) as db:
        db.execute(f"UPDATE files SET {column} = ? WHERE path = 'a.py'", (value,))
    assert "a.py" not in store.tree.load()[0]
    assert state(survey(repo, store=store)) == right
    assert "a.py" in store.tree.load()[0]


def test_a_damaged_catalog_row_of_the_other_half_is_made_again(repo: Path, store: IndexStore, tmp_path: Path) -> None:
    right = state(survey(repo, store=store))
    with closing(sqlite3.connect(store.syntax.path, isolation_level=None)) as db:
        db.execute("UPDATE syntax SET defs = x'00000000'")
    other = IndexStore(store.syntax, TreeCache(tmp_path / "other", repo))
    assert state(survey(repo, store=other)) == right


def test_a_read_only_cache_is_read(repo: Path, store: IndexStore, aged: None) -> None:
    survey(repo, store=store)
    folder = store.syntax.path.parent
    shut = [folder, folder / TREES, *folder.rglob("*.sqlite3")]
    for path in shut:
        path.chmod(stat.S_IRUSR | (stat.S_IXUSR if path.is_dir() else 0))
    try:
        write(repo, {"new.py": "n = 1\n"})
        found = survey(repo, store=store)
    finally:
        for path in shut:
            path.chmod(0o700)
    assert "new.py" in found.entries
    if os.geteuid() != 0:  # root may write everything
        assert any("was not used" in note for note in found.notes)


LIMITED = """
import resource, signal, sys
from pathlib import Path
from agentctx.repo.store import IndexStore
from agentctx.repo.survey import survey
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
root, cache = Path(sys.argv[1]), Path(sys.argv[2])
limit = int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
found = survey(root, store=IndexStore.of(cache, root), processes=int(sys.argv[4]))
sys.stdout.write(f"{len(found.entries)} {found.n_parsed} {found.notes}")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit of file sizes")
@pytest.mark.parametrize("limit", [0, 8192, 40960, 300_000])
def test_a_full_disk_is_a_note(repo: Path, tmp_path: Path, limit: int) -> None:
    write(repo, {f"m{i}.py": f"def f{i}(): return {i}\n" * 40 for i in range(60)})
    command = [sys.executable, "-c", LIMITED, str(repo), str(tmp_path / "small"), str(limit), "1"]
    out = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert out.startswith("63 63 ")
    assert ("was not used" in out) == (limit < 300_000)
    after = survey(repo, store=IndexStore.of(tmp_path / "small", repo))
    assert state(after) == state(survey(repo))


BOTH = """
import sys
from pathlib import Path
from agentctx.repo.store import IndexStore
from agentctx.repo.survey import survey
root, cache = Path(sys.argv[1]), Path(sys.argv[2])
for number in range(15):
    (root / f"{sys.argv[3]}{number}.py").write_text(f"x = {number}")
    found = survey(root, store=IndexStore.of(cache, root))
    assert found.notes == (), found.notes
    assert found.data["a.py"].startswith(b"def a")
"""


def test_two_processes_share_the_index(repo: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", BOTH, str(repo), str(tmp_path / "cache")]
    both = [subprocess.Popen([*command, name], cwd=ROOT, stderr=subprocess.PIPE, text=True) for name in "pq"]
    errors = [process.communicate(timeout=120)[1] for process in both]
    assert [(process.returncode, error) for process, error in zip(both, errors, strict=True)] == [(0, "")] * 2
    found = survey(repo, store=IndexStore.of(tmp_path / "cache", repo))
    assert len(found.entries) == 33
    assert state(found) == state(survey(repo))


def test_the_cache_is_not_in_the_repository(repo: Path, store: IndexStore) -> None:
    before = sorted(repo.rglob("*"))
    survey(repo, store=store)
    assert sorted(repo.rglob("*")) == before


def test_the_trees_used_longest_ago_go_first(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for number in range(3):
        root = tmp_path / f"r{number}"
        write(root, {"a.py": f"x = {number}\n"})
        survey(root, store=IndexStore.of(cache, root))
        os.utime(TreeCache(cache, root).path, (OLD + number, OLD + number))
    assert [info.root for info in show_trees(cache)] == [str(tmp_path / f"r{number}") for number in range(3)]
    TreeCache(cache, tmp_path / "r0").load()  # used: now the newest
    size = max(info.n_bytes for info in show_trees(cache))
    last = tmp_path / "r3"
    small = TreeCache(cache, last, max_bytes=size * 2)
    write(last, {"a.py": ""})
    small.save(())
    assert [info.root for info in show_trees(cache)] == [str(tmp_path / "r0"), str(last)]
