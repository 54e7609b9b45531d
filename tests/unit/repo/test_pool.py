"""Worker processes: the same results as without, crashes name one file, nothing outlives the parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from agentctx.repo.catalog_row import NOTHING, CatalogRow
from agentctx.repo.entry import FileEntry
from agentctx.repo.examine import Examined, read_and_examine
from agentctx.repo.frames import read_frame, write_frame
from agentctx.repo.pool import WorkerFailed, examine_in_processes
from agentctx.repo.store import IndexStore
from agentctx.repo.survey import survey
from agentctx.repo.syntax_codec import decode

ROOT = Path(__file__).parents[3]
BIG = "def f(a, b):\n    return g(a) + b.c\n\n\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    for number in range(40):
        path = root / f"p{number % 3}" / f"m{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {number}\n" + BIG * (number + 1))
    (root / "made.py").write_text("# @generated\n")
    (root / "notes.md").write_text("# Notes\n\ntext\n")
    return root


def listed(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def shown(one: Examined) -> tuple[object, ...]:
    made = one.syntax
    if one.blob is not None:
        assert one.entry is not None
        made = decode(one.blob, one.entry)
    return one.path, one.reason, one.entry, one.row, made


@pytest.mark.parametrize("n_processes", [1, 3])
def test_processes_find_what_one_finds(tree: Path, n_processes: int) -> None:
    paths = [*listed(tree), "gone.py"]
    found = {one.path: shown(one) for one in examine_in_processes(tree, paths, None, n_processes)}
    assert found == {one.path: shown(one) for one in read_and_examine(tree, paths, None)}
    assert found["gone.py"][1] == "vanished: git lists it, but it is not in the work tree"
    assert found["made.py"][1] == "generated: its header says @generated"


@pytest.mark.parametrize("n_processes", [1, 2, 5])
def test_a_survey_is_the_same_over_process_counts(
    tree: Path, tmp_path: Path, n_processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentctx.repo.job.PARALLEL_BYTES", 0)
    found = survey(tree, store=IndexStore.of(tmp_path / "cache", tree), processes=n_processes)
    plain = survey(tree, processes=1)
    assert found.notes == ()
    assert (dict(found.entries), found.skipped, found.n_parsed) == (dict(plain.entries), plain.skipped, 41)
    assert [row.row for row in found.rows.values()] == [row.row for row in plain.rows.values()]
    again = survey(tree, store=IndexStore.of(tmp_path / "cache", tree), processes=n_processes)
    assert again.n_parsed == 0  # workers ask the cache, too


def test_frames() -> None:
    entry = FileEntry("a é.py", "0" * 64, "python", False, 3)
    row = CatalogRow(b"\1\0\0\0", b"\7", b"", 9)
    cases = [
        Examined("x", "no"),
        Examined("a é.py", None, entry, row, None, b"blob"),
        Examined("a é.py", None, entry, NOTHING),
    ]
    read, write = os.pipe()
    with os.fdopen(write, "wb") as out, os.fdopen(read, "rb") as source:
        for case in cases:
            write_frame(out, case)
        out.write(b"\xff\0\0\0half")
        out.close()
        assert [read_frame(source) for _ in cases] == cases
        assert read_frame(source) is None
        assert read_frame(source) is None


# ---------------------------------------------------------------- workers that die

BROKEN = """
import json, os, signal, sys, time
sys.path[:] = json.loads(sys.argv[1])
from agentctx.repo import worker
real = worker.read_and_examine
def broken(root, paths, cache):
    if paths[0].endswith("m7.py"):
        {action}
    return real(root, paths, cache)
worker.read_and_examine = broken
worker.main(*sys.argv[2:])
"""


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", f"the parser crashed on it (signal {signal.SIGSEGV.value})"),
        ("os._exit(3)", "the parser crashed on it (status 3)"),
        ("sys.stdout.close(); raise MemoryError", "the parser crashed on it (status 1)"),
    ],
)
@pytest.mark.parametrize("n_processes", [1, 2])
def test_a_crash_costs_one_file(tree: Path, action: str, reason: str, n_processes: int) -> None:
    paths = listed(tree)
    start = BROKEN.format(action=action)
    found = {one.path: one for one in examine_in_processes(tree, paths, None, n_processes, start=start)}
    assert sorted(found) == paths
    assert {path: one.reason for path, one in found.items() if one.reason} == {
        "made.py": "generated: its header says @generated",
        "p1/m7.py": reason,
    }


def test_a_worker_that_hangs_is_ended(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentctx.repo.pool.SECONDS_PER_FILE", 1.5)
    start = BROKEN.format(action="time.sleep(100)")
    paths = ["p0/m6.py", "p1/m7.py", "p2/m8.py"]
    found = {one.path: one.reason for one in examine_in_processes(tree, paths, None, 1, start=start)}
    assert found["p1/m7.py"] == "the parser took more than 2 seconds on it"
    assert found["p0/m6.py"] is None
    assert found["p2/m8.py"] is None


def test_workers_that_do_not_come_up_are_an_error(tree: Path) -> None:
    with pytest.raises(WorkerFailed, match=r"did not come up \(exit status 5\)"):
        list(examine_in_processes(tree, listed(tree), None, 2, start="raise SystemExit(5)"))


def test_closing_ends_all_workers(tree: Path) -> None:
    with closing(examine_in_processes(tree, listed(tree), None, 2)) as results:
        next(results)
    assert _children(os.getpid()) == []


PARENT = """
import sys, time
from pathlib import Path
from agentctx.repo.pool import examine_in_processes
from agentctx.repo.store import IndexStore
import agentctx.repo.job
agentctx.repo.job.PARALLEL_BYTES = 0
from agentctx.repo.survey import survey
root = Path(sys.argv[1])
print("go", flush=True)
survey(root, store=IndexStore.of(Path(sys.argv[2]), root), processes=2)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_the_parent(tree: Path, tmp_path: Path, how: signal.Signals) -> None:
    for number in range(60):
        (tree / f"more{number}.py").write_text(f"# {number}\n" + BIG * 100)
    command = [sys.executable, "-c", PARENT, str(tree), str(tmp_path / "cache")]
    parent = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert parent.stdout is not None
    parent.stdout.readline()
    workers: list[int] = []
    deadline = time.monotonic() + 30
    while len(workers) < 2 and parent.poll() is None and time.monotonic() < deadline:
        workers = [pid for pid in _children(parent.pid) if "agentctx.repo.worker" in _command(pid)]
        time.sleep(0.01)
    assert len(workers) == 2
    parent.send_signal(how)
    parent.communicate(timeout=30)
    assert parent.returncode != 0
    while any("agentctx.repo.worker" in _command(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in workers if "agentctx.repo.worker" in _command(pid)] == []
    after = survey(tree, store=IndexStore.of(tmp_path / "cache", tree), processes=1)
    assert (len(after.entries), after.notes) == (101, ())


def _children(pid: int) -> list[int]:
    out = subprocess.run(("ps", "-e", "-o", "pid=,ppid=,args="), check=True, capture_output=True, text=True).stdout
    rows = [line.split(None, 2) for line in out.splitlines()]
    return sorted({int(row[0]) for row in rows if int(row[1]) == pid and row[2].split()[0] != "ps"})


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def test_nothing_is_unpickled_or_imported_from_the_cache() -> None:
    """What lies on disk is data."""
    for name in ("cache", "tree_cache", "database", "syntax_codec", "frames", "survey", "store", "job", "worker"):
        text = (ROOT / "agentctx" / "repo" / f"{name}.py").read_text()
        assert not any(word in text for word in ("pickle", "marshal", "eval(", "exec(")), name
