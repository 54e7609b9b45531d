"""kill -9 (or a full disk) at every step of landing and undoing: all-old bytes, all-new bytes, or a journal.

A child process lands an edit of three files and a new one. An audit hook in the child counts what it does to files
(open, rename, link, remove, mkdir) and, at the n-th, kills it or raises "no space left". For every n the next
command's `recover` must leave the tree old or new as a whole.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentctx.edit.apply import digest
from agentctx.edit.journal import NAME
from agentctx.edit.session import edit_session
from agentctx.edit.transaction import land, recover, repo_lock, undo
from agentctx.errors import AgentctxError
from agentctx.prompt import EditPatch, FileEdit, Hunk
from agentctx.spans import ByteSpan
from agentctx.vcs import clean_environment

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")

OLD = {"a.py": b"a = 1\n" * 300, "b.py": b"b = 1\r\n", "d/c.txt": b"c"}
NEW = {"a.py": b"a = 2\n" * 500, "b.py": b"b = 2\r\n", "d/c.txt": b"C", "new/deep/n.py": b"n = 1\n"}
EVENTS = ("open", "os.rename", "os.remove", "os.link", "os.mkdir", "os.rmdir", "shutil.copystat")


def make_repo(root: Path) -> None:
    for path, data in OLD.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    for args in (
        ["init", "-q", "--template="],
        ["add", "-A"],
        ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "c"],
    ):
        subprocess.run(["git", *args], cwd=root, env=clean_environment(), check=True)


def content(root: Path) -> dict[str, bytes]:
    """All files and folders but git's own."""
    found = {}
    for path in sorted(root.rglob("*")):
        inner = path.relative_to(root).as_posix()
        if inner.split("/")[0] != ".git":
            found[inner] = path.read_bytes() if path.is_file() else b"<folder>"
    return found


def expected(files: dict[str, bytes]) -> dict[str, bytes]:
    folders = {str(parent) for path in files for parent in Path(path).parents if str(parent) != "."}
    return dict(sorted({**files, **dict.fromkeys(folders, b"<folder>")}.items()))


def patch() -> EditPatch:
    edits = []
    for path, data in NEW.items():
        old = OLD.get(path)
        edits.append(FileEdit(path, digest(old), (Hunk(ByteSpan(0, len(old or b"")), data),)))
    return EditPatch(tuple(edits))


def strike_at(first: int, act: Callable[[], None], *, ours: Path, always: bool) -> list[int]:
    """Call `act` before the first-th thing done to a file below `ours` (and before all later ones, if `always`).

    Stays for the life of the process. Returns a list that holds the number of each struck event.
    """
    seen = 0
    struck: list[int] = []

    def hook(event: str, args: tuple[object, ...]) -> None:
        nonlocal seen
        if event not in EVENTS or not isinstance(args[0], str | os.PathLike) or not Path(args[0]).is_relative_to(ours):
            return
        if event == "open" and not (isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        seen += 1
        if seen == first or (always and seen > first):
            struck.append(seen)
            act()

    sys.addaudithook(hook)
    return struck


UNSTRUCK, MAPPED, DONE, BUG = 9, 7, 0, 70


def in_child(work: Callable[[], list[int]]) -> int:
    """How a forked child ends: -SIGKILL, or one of the numbers above. `work` returns what was struck."""
    pid = os.fork()
    if not pid:
        status = BUG
        try:
            status = DONE if work() else UNSTRUCK
        except AgentctxError:
            status = MAPPED
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def no_space() -> None:
    raise OSError(errno.ENOSPC, "No space left on device", "x")


@dataclass
class Scene:
    """A repository with an edit that is ready to land, and copies to start again from."""

    base: Path
    before: dict[str, bytes]
    after: dict[str, bytes]
    act: Callable[[], None]

    @property
    def work(self) -> Path:
        return self.base / "work"

    def save(self) -> None:
        for name in ("work", "cache"):
            shutil.copytree(self.base / name, self.base / f"saved-{name}", symlinks=True)

    def restore(self) -> None:
        for name in ("work", "cache"):
            shutil.rmtree(self.base / name)
            shutil.copytree(self.base / f"saved-{name}", self.base / name, symlinks=True)

    def settle(self) -> str:
        """What the next command makes of the tree: 'old' or 'new'."""
        known = {"old": self.before, "new": self.after}
        if not (self.work / ".git/agentctx" / NAME).exists():
            assert content(self.work) in known.values(), "neither old nor new, and no journal"
        recover(self.work)
        assert recover(self.work) is None
        return next(name for name, files in known.items() if files == content(self.work))


def scene_of(base: Path, action: str) -> Scene:
    make_repo(base / "work")
    cache = base / "cache"
    with edit_session(base / "work", cache, clean_environment()) as session:
        with session.worktree() as place:
            applied = session.apply(patch(), place.worktree)
        if action == "undo":
            session.land(applied)

    def land_it() -> None:
        with repo_lock(session.repo):
            land(session.repo, applied.changes, applied.diff, session.folder, session.rules)

    def undo_it() -> None:
        undo(base / "work", cache)

    old, new = expected(OLD), expected(NEW)
    scene = Scene(base, old, new, land_it) if action == "land" else Scene(base, new, old, undo_it)
    assert content(scene.work) == scene.before
    scene.save()
    return scene


@pytest.mark.slow
@pytest.mark.parametrize("action", ["land", "undo"])
@pytest.mark.parametrize(("strike", "always", "stride"), [(kill, False, 1), (no_space, False, 3), (no_space, True, 3)])
def test_every_step_of_landing_and_undoing(
    tmp_path: Path, action: str, strike: Callable[[], None], always: bool, stride: int
) -> None:
    scene = scene_of(tmp_path, action)
    seen: dict[tuple[int, str], int] = {}
    for n in range(1, 500, stride):

        def work(n: int = n) -> list[int]:
            struck = strike_at(n, strike, ours=tmp_path, always=always)
            scene.act()
            return struck

        status = in_child(work)
        if status == UNSTRUCK:
            break
        found = scene.settle()
        seen[status, found] = seen.get((status, found), 0) + 1
        scene.restore()
    assert n > 20, "the hook saw too little"
    if strike is kill:
        assert set(seen) == {(-signal.SIGKILL, "old"), (-signal.SIGKILL, "new")}
    else:
        assert set(seen) <= {(MAPPED, "old"), (MAPPED, "new"), (DONE, "new")}
        assert (MAPPED, "old") in seen


@pytest.mark.slow
def test_a_whole_session_killed_here_and_there(tmp_path: Path) -> None:
    """Whatever a killed session leaves behind (worktree, ref, lock), the next one starts clean."""
    make_repo(tmp_path / "work")
    work, cache = tmp_path / "work", tmp_path / "cache"
    cache.mkdir()
    old, new = expected(OLD), expected(NEW)
    Scene(tmp_path, old, new, kill).save()
    for n in range(1, 500, 6):

        def session_of(n: int = n) -> list[int]:
            struck = strike_at(n, kill, ours=tmp_path, always=False)
            with edit_session(work, cache, clean_environment()) as session:
                with session.worktree() as place:
                    applied = session.apply(patch(), place.worktree)
                session.land(applied)
            return struck

        if in_child(session_of) == UNSTRUCK:
            break
        scene = Scene(tmp_path, old, new, kill)
        scene.settle()
        with edit_session(work, cache, clean_environment()) as session:
            assert list((cache / "worktrees").glob("*/*")) == []
            refs = subprocess.run(["git", "for-each-ref", "refs/agentctx"], cwd=work, capture_output=True, check=True)
            assert refs.stdout.decode().split() == [session.snapshot.commit, "commit", session.snapshot.ref]
        scene.restore()
    assert n > 30
