"""What an edit must never touch."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentctx.edit.paths import PathRules, checked_patch, glob_matches
from agentctx.errors import EditRefused
from agentctx.prompt import EditPatch, FileEdit


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / "src").mkdir(parents=True)
    (root / "src/a.py").write_text("a\n")
    (tmp_path / "outside.py").write_text("o\n")
    (root / "link.py").symlink_to("src/a.py")
    (root / "out.py").symlink_to("../outside.py")
    (root / "outdir").symlink_to("..")
    (root / "gitlink").symlink_to(".git")
    (root / "loop").symlink_to("loop")
    return root


@pytest.mark.parametrize(
    "path",
    [
        "", ".", "..", "/etc/passwd", "../outside.py", "src/../../outside.py", "src//a.py", "./a.py", "~/a.py",
        "C:/a.py", "src\\a.py", "a\0b", ".git/config", ".GIT/hooks/x", "sub/.git/config", ".git./config",
        "git~1/config", ".g\u200cit/config", "out.py", "outdir/outside.py", "outdir/new.py", "gitlink/config",
        "src", "loop", "secret.env", "migrations/0001.py",
    ],
)  # fmt: skip
def test_refused(root: Path, path: str) -> None:
    with pytest.raises(EditRefused):
        PathRules(root, ("*.env", "migrations/")).check(path)


@pytest.mark.parametrize("path", ["src/a.py", "src/new.py", "deep/new/file.py", ".github/x.yml", ".gitignore", "é.py"])
def test_allowed(root: Path, path: str) -> None:
    assert PathRules(root, ("*.env", "migrations/")).check(path) == path


def test_a_link_inside_is_followed_and_its_target_may_be_protected(root: Path) -> None:
    patch = EditPatch((FileEdit("link.py", "0" * 64, ()),))
    checked = checked_patch(patch, PathRules(root))
    assert checked.files[0].path == "src/a.py"
    assert checked.notes == ("link.py is a link; src/a.py is edited",)
    with pytest.raises(EditRefused, match="protected by 'src/'"):
        checked_patch(patch, PathRules(root, ("src/",)))


def test_one_file_under_two_names_is_refused(root: Path) -> None:
    patch = EditPatch((FileEdit("link.py", "0" * 64, ()), FileEdit("src/a.py", "0" * 64, ())))
    with pytest.raises(EditRefused, match="two names"):
        checked_patch(patch, PathRules(root))


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", "a/b.py", True), ("*.py", "a/b.pyc", False), ("/a.py", "a.py", True), ("/a.py", "b/a.py", False),
        ("a/**/c.py", "a/c.py", True), ("a/**/c.py", "a/x/y/c.py", True), ("a/*", "a/b/c.py", True),
        ("a/*.py", "a/b/c.py", False), ("gen/", "x/gen/a.py", True), ("gen/", "gen", False), ("a/**", "a/b", True),
        ("[ab].py", "a.py", True), ("[!ab].py", "a.py", False), ("?.py", "ab.py", False), ("**/t.py", "t.py", True),
    ],
)  # fmt: skip
def test_globs(pattern: str, path: str, expected: bool) -> None:
    assert glob_matches(pattern, path) is expected
