"""Snapshot and worktrees: what is in them, and what stays untouched."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentctx.edit.session import edit_session
from agentctx.errors import ConflictError, EditRefused, RepoError
from agentctx.vcs import clean_environment


def listing(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(folder).parts
    }


def mixed(tree) -> None:
    """Staged, unstaged on top of staged, untracked, ignored, deleted, executable and linked files."""
    tree.write({".gitignore": "*.log\nout/\n", "a.py": "a = 1\n", "mm.py": "m = 1\n", "gone.py": "g\n", "x.sh": "#!\n"})
    (tree.root / "x.sh").chmod(0o755)
    (tree.root / "link").symlink_to("a.py")
    tree.commit()
    tree.write({"mm.py": "m = 2\n", "staged.py": "s\n"})
    tree.git("add", "mm.py", "staged.py")
    tree.write({"mm.py": "m = 3\n", "new é.py": "n\n", "dbg.log": "l\n", "out/o.txt": "o\n"})
    (tree.root / "gone.py").unlink()


def test_the_worktree_is_the_users_tree_and_nothing_of_the_user_changes(tree) -> None:
    mixed(tree)
    before = tree.state()
    with tree.session() as session, session.worktree() as place:
        assert listing(place.worktree) == {
            ".gitignore": "*.log\nout/\n", "a.py": "a = 1\n", "link": "a = 1\n", "mm.py": "m = 3\n",
            "new é.py": "n\n", "staged.py": "s\n", "x.sh": "#!\n",
        }  # fmt: skip
        assert os.access(place.worktree / "x.sh", os.X_OK)
        assert (place.worktree / "link").is_symlink()
        assert session.snapshot.ref == f"refs/agentctx/{session.run}"
        assert tree.git("rev-parse", session.snapshot.ref).strip() == session.snapshot.commit
        assert tree.git("rev-parse", f"{session.snapshot.commit}^").strip() == tree.git("rev-parse", "HEAD").strip()
        seen = place.worktree
    assert not seen.exists()
    assert tree.state() == before


def test_before_the_first_commit(tree) -> None:
    tree.write({"a.py": "a\n"})
    before = tree.state()
    with tree.session() as session, session.worktree() as place:
        assert listing(place.worktree) == {"a.py": "a\n"}
    assert tree.state() == before


def test_in_an_empty_repository(tree) -> None:
    with tree.session() as session, session.worktree() as place:
        assert listing(place.worktree) == {}


def test_in_a_linked_worktree_and_inside_a_hook(tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write({"a.py": "a\n"})
    tree.commit()
    linked = tmp_path / "linked"
    tree.git("worktree", "add", "-q", str(linked), "-b", "other")
    (linked / "only.py").write_text("o\n")
    monkeypatch.setenv("GIT_DIR", str(tree.root / ".git"))  # what git exports to hooks
    monkeypatch.setenv("GIT_INDEX_FILE", str(tree.root / ".git/index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tree.root))
    before = tree.state()
    with edit_session(linked, tree.cache, clean_environment()) as session, session.worktree() as place:
        assert listing(place.worktree) == {"a.py": "a\n", "only.py": "o\n"}
        assert session.repo.git_dir == tree.root / ".git/worktrees/linked"
        with tree.session():  # the main work tree has its own lock
            pass
        assert place.worktree.is_dir()
    assert tree.state() == before


def test_the_users_hooks_do_not_run(tree, tmp_path: Path) -> None:
    tree.write({"a.py": "a\n"})
    tree.commit()
    for name in ("post-checkout", "reference-transaction", "pre-commit", "post-commit"):
        hook = tree.root / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/ran\n")
        hook.chmod(0o755)
    with tree.session() as session, session.worktree():
        pass
    assert not (tmp_path / "ran").exists()


def test_dependency_folders_are_linked_and_survive(tree) -> None:
    tree.write({".gitignore": ".venv/\nnode_modules\n_version.py\n*.egg-info/\n*.env\n", "a.py": "a\n"})
    tree.commit()
    tree.write({
        ".venv/lib/x.py": "x\n", "node_modules/m/i.js": "m\n", "src/p/_version.py": "v\n", "src/p/__init__.py": "",
        "src/p.egg-info/PKG-INFO": "Name: p\n", "secret.env": "k\n",
    })  # fmt: skip
    before = tree.state()
    with tree.session() as session, session.worktree() as place:
        assert (place.worktree / ".venv").resolve() == tree.root / ".venv"
        assert (place.worktree / "node_modules/m/i.js").read_text() == "m\n"
        assert (place.worktree / "src/p/_version.py").read_text() == "v\n"
        assert not (place.worktree / "src/p/_version.py").is_symlink()
        assert (place.worktree / "src/p.egg-info/PKG-INFO").is_file()
        assert not (place.worktree / "secret.env").exists()
        assert set(place.dependencies) == {tree.root / ".venv", tree.root / "node_modules"}
    assert tree.state() == before


def test_submodules_are_tolerated_but_not_edited(tree, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for args in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "c"]):
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@t", *args], cwd=other, check=True, env=clean_environment()
        )
    tree.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub")
    tree.commit()
    (tree.root / "sub/s.py").write_text("s\n")
    with tree.session() as session, session.worktree() as place:
        assert (place.worktree / "sub/s.py").read_text() == "s\n"
        with pytest.raises(EditRefused, match="submodule sub"):
            session.files.read("sub/s.py")
    assert (tree.root / "sub/s.py").read_text() == "s\n"


def test_read_only_leftovers_of_a_check_are_removed(tree) -> None:
    tree.write({"a.py": "a\n"})
    with tree.session() as session, session.worktree() as place:
        folder = place.worktree / "ro/inner"
        folder.mkdir(parents=True)
        (folder / "f").write_text("")
        folder.chmod(0o500)
        folder.parent.chmod(0o500)


def test_a_killed_session_is_cleaned_up_by_the_next(tree) -> None:
    tree.write({"a.py": "a\n"})
    tree.commit()
    before = tree.state()
    code = (
        "import os, signal, sys; from pathlib import Path; from agentctx.edit.session import edit_session\n"
        "with edit_session(Path(sys.argv[1]), Path(sys.argv[2]), {}) as s, s.worktree() as w:\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tree.root), str(tree.cache)], check=False)
    assert done.returncode == -9
    assert len(list((tree.cache / "worktrees").glob("*/*"))) == 1
    assert "refs/agentctx/" in tree.git("for-each-ref")
    with tree.session():
        assert list((tree.cache / "worktrees").glob("*/*")) == []
    assert tree.state() == before


def test_one_edit_at_a_time(tree) -> None:
    tree.write({"a.py": "a\n"})
    with (
        tree.session(),
        pytest.raises(ConflictError, match=f"another agentctx edit is running.*{os.getpid()}"),
        tree.session(),
    ):
        pass


def test_only_git_repositories(tree, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with (
        pytest.raises(RepoError, match="edits need a git repository") as caught,
        edit_session(tmp_path / "plain", tree.cache, {}),
    ):
        pass
    assert "git init" in (caught.value.hint or "")
    (tree.root / "inner").mkdir()
    with pytest.raises(RepoError, match="folder inside"), edit_session(tree.root / "inner", tree.cache, {}):
        pass


def test_reading_notices_what_changed_since(tree) -> None:
    mixed(tree)
    with tree.session(protect=["x.*"]) as session:
        assert session.files.read("mm.py") == b"m = 3\n"
        assert session.files.read("link") == b"a = 1\n"
        tree.write({"mm.py": "m = 4\n", "staged.py": "other\n", "born.py": "b\n"})
        assert session.files.read("mm.py") == b"m = 3\n"  # as it was
        for path in ("staged.py", "born.py"):
            with pytest.raises(ConflictError, match=path):
                session.files.read(path)
        for path in ("dbg.log", "out/o.txt", "x.sh", "../a.py", ".git/config"):
            with pytest.raises(EditRefused):
                session.files.read(path)
        with pytest.raises(FileNotFoundError):
            session.files.read("nope.py")


def test_line_ends_that_git_converts_stay_the_users(tree) -> None:
    tree.write({".gitattributes": "*.py text=auto\n", "a.py": b"a = 1\r\nb = 2\r\n"})
    tree.git("config", "core.autocrlf", "true")
    tree.commit()
    with tree.session() as session:
        assert session.files.read("a.py") == b"a = 1\r\nb = 2\r\n"
