"""Landing, undoing and recovering, on real repositories."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from edit_repos import NEW, OLD, replace_all

from agentctx.edit.journal import NAME, Change, Journal, read_journal, write_journal
from agentctx.edit.repository import open_repo
from agentctx.edit.transaction import recover, undo
from agentctx.errors import ConflictError, DamagedState, EditError, EditRefused, UsageError


@pytest.fixture
def filled(tree):
    tree.write({**OLD, ".gitignore": "*.log\n"})
    (tree.root / "b.sh").chmod(0o750)
    tree.commit()
    tree.write({"a.py": b"a = 0\n"})
    tree.git("add", "a.py")
    tree.write({"a.py": OLD["a.py"], "untracked.py": b"u\n"})  # staged and changed again
    return tree


def landed(tree, new=NEW):
    with tree.session() as session:
        with session.worktree() as place:
            applied = session.apply(replace_all(OLD, new), place.worktree)
        return session.land(applied), session.folder


def test_landing_writes_exactly_the_new_bytes(filled) -> None:
    index = (filled.root / ".git/index").read_bytes()
    refs = filled.git("for-each-ref")
    result, folder = landed(filled)
    assert result.paths == tuple(sorted(NEW))
    assert {path: (filled.root / path).read_bytes() for path in NEW} == NEW
    assert (filled.root / "b.sh").stat().st_mode & 0o777 == 0o750
    assert (filled.root / "untracked.py").read_bytes() == b"u\n"
    assert (filled.root / ".git/index").read_bytes() == index
    assert filled.git("for-each-ref") == refs
    assert folder.state() == "landed"
    assert not list(filled.root.rglob("*agentctx-*"))
    assert not (filled.root / ".git/agentctx" / NAME).exists()
    filled.git("apply", "--check", "-R", str(result.patch))  # the kept patch says the same


def test_undo_gives_back_every_byte_and_only_once(filled) -> None:
    before = filled.state()
    landed(filled)
    assert filled.state() != before
    assert undo(filled.root, filled.cache).paths == tuple(sorted(NEW))
    assert filled.state() == before
    with pytest.raises(UsageError, match="nothing to undo"):
        undo(filled.root, filled.cache)


def test_undo_of_a_named_run(filled) -> None:
    result, _ = landed(filled)
    with pytest.raises(UsageError, match="there is no run 'nope'"):
        undo(filled.root, filled.cache, "nope")
    undo(filled.root, filled.cache, result.run)
    with pytest.raises(UsageError, match="its state is 'undone'"):
        undo(filled.root, filled.cache, result.run)


def test_undo_refuses_when_a_file_was_changed_since(filled) -> None:
    landed(filled)
    filled.write({"d/c.txt": b"mine"})
    before = filled.state()
    with pytest.raises(ConflictError, match=r"d/c\.txt changed meanwhile: so run .* can't be undone"):
        undo(filled.root, filled.cache)
    assert filled.state() == before


@pytest.mark.parametrize("drift", ["change", "remove", "link", "create"])
def test_drift_writes_nothing_and_keeps_the_patch(filled, drift: str) -> None:
    with filled.session() as session:
        with session.worktree() as place:
            applied = session.apply(replace_all(OLD, NEW), place.worktree)
        path = filled.root / "d/c.txt"
        if drift == "change":
            path.write_bytes(b"no newline!")
        elif drift == "create":
            filled.write({"n/e/w.py": b"other\n"})
        else:
            path.unlink()
            if drift == "link":
                (filled.root / "d/real.txt").write_bytes(OLD["d/c.txt"])
                path.symlink_to("real.txt")
        before = filled.state()
        with pytest.raises(ConflictError, match="changed meanwhile: nothing was written") as caught:
            session.land(applied)
        assert caught.value.exit_code == 3
        assert filled.state() == before
        assert session.folder.patch.read_bytes() == applied.diff
        assert session.folder.state() == "conflict"


def test_a_folder_that_became_a_link_outwards_is_not_followed(filled, tmp_path: Path) -> None:
    with filled.session() as session:
        with session.worktree() as place:
            applied = session.apply(replace_all(OLD, {"d/c.txt": b"new"}), place.worktree)
        (filled.root / "d").rename(tmp_path / "moved")
        (filled.root / "d").symlink_to(tmp_path / "moved")
        with pytest.raises(ConflictError):
            session.land(applied)
    assert (tmp_path / "moved/c.txt").read_bytes() == OLD["d/c.txt"]


def test_protected_and_foreign_paths_never_reach_the_worktree(filled) -> None:
    with filled.session(protect=["*.sh"]) as session, session.worktree() as place:
        for path in ("b.sh", "../x.py", ".git/config", "new.log"):
            with pytest.raises(EditRefused):
                session.apply(replace_all(OLD, {path: b"x"}), place.worktree)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_write_permission(filled) -> None:
    before = filled.state()
    (filled.root / "d").chmod(0o500)
    try:
        with pytest.raises(EditError, match="can't be written"):
            landed(filled)
    finally:
        (filled.root / "d").chmod(0o755)
    assert filled.state() == before


def test_recover_has_nothing_to_do(filled, tmp_path: Path) -> None:
    assert recover(filled.root) is None
    assert recover(tmp_path) is None


@pytest.mark.parametrize("n_done", range(4))
def test_recover_after_some_renames(filled, n_done: int) -> None:
    before = filled.state()
    repo = open_repo(filled.root)
    changes = tuple(Change(path, OLD.get(path), NEW[path]) for path in sorted(NEW) if path != "n/e/w.py")
    repo.state.mkdir()
    write_journal(repo.state, Journal("r1", filled.cache / "gone", "land", changes))
    for change in changes[:n_done]:
        (filled.root / change.path).write_bytes(change.new or b"")
    (filled.root / "d/.agentctx-r1-2.tmp").write_bytes(b"half")
    found = recover(filled.root)
    assert found is not None
    assert found.action == ("completed" if n_done == 3 else "rolled-back")
    assert "had been interrupted" in found.message()
    if n_done < 3:
        assert filled.state() == before
    assert not list(filled.root.rglob(".agentctx-*"))
    assert recover(filled.root) is None


def test_recover_never_takes_back_what_the_user_wrote(filled) -> None:
    """The staged content is still there, so it was the user who gave a.py the same bytes."""
    repo = open_repo(filled.root)
    repo.state.mkdir()
    changes = (Change("a.py", OLD["a.py"], NEW["a.py"]), Change("b.sh", OLD["b.sh"], NEW["b.sh"]))
    write_journal(repo.state, Journal("r1", filled.cache / "gone", "land", changes))
    (filled.root / ".agentctx-r1-0.tmp").write_bytes(NEW["a.py"])
    filled.write({"a.py": NEW["a.py"]})
    assert recover(filled.root).action == "rolled-back"
    assert (filled.root / "a.py").read_bytes() == NEW["a.py"]
    assert (filled.root / "b.sh").read_bytes() == OLD["b.sh"]


def test_recover_leaves_the_decision_about_a_third_content_to_the_user(filled) -> None:
    repo = open_repo(filled.root)
    repo.state.mkdir()
    changes = (Change("a.py", OLD["a.py"], NEW["a.py"]), Change("b.sh", OLD["b.sh"], NEW["b.sh"]))
    write_journal(repo.state, Journal("r1", filled.cache / "r1", "land", changes))
    filled.write({"a.py": NEW["a.py"], "b.sh": b"mine"})
    with pytest.raises(ConflictError, match=r"b\.sh changed since") as caught:
        recover(filled.root)
    assert "journal.json" in (caught.value.hint or "")
    assert (filled.root / "a.py").read_bytes() == NEW["a.py"]


@pytest.mark.parametrize("damage", [b"", b"{", b'{"sum": "0", "body": {"version": 1}}', b"[]"])
def test_a_damaged_journal_is_said(filled, damage: bytes) -> None:
    state = open_repo(filled.root).state
    state.mkdir()
    (state / NAME).write_bytes(damage)
    with pytest.raises(DamagedState, match=r"journal\.json can't be read"):
        recover(filled.root)


def test_the_journal_keeps_bytes(tmp_path: Path) -> None:
    journal = Journal("r", tmp_path, "land", (Change("é.py", None, bytes(range(256))),), ("é",))
    write_journal(tmp_path, journal)
    assert read_journal(tmp_path) == journal
    assert json.loads((tmp_path / NAME).read_bytes())["body"]["run"] == "r"


def test_a_reader_never_sees_half_a_file(filled) -> None:
    """While edits land and are undone, every read gives all-old or all-new bytes."""
    seen: set[bytes] = set()
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            seen.add((filled.root / "a.py").read_bytes())

    new = {"a.py": b"a = 2\n" * 5000}
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        for _ in range(2):
            landed(filled, new)
            undo(filled.root, filled.cache)
    finally:
        stop.set()
        thread.join()
    assert seen <= {OLD["a.py"], new["a.py"]}
