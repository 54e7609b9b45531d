"""Diffs as data: what git writes is read back, and lines are moved through hunks as git moves them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctx.diff import DiffFile, Hunk, between, joined, line_through, parse, through

NUMBERED = [f"line {n}" for n in range(1, 13)]


def test_hunks_with_text() -> None:
    diff = b"""diff --git a/a.py b/a.py
index 1..2 100644
--- a/a.py
+++ b/a.py
@@ -1,0 +2 @@ def f():
+--- not a header
@@ -4,2 +6 @@
-old
-@@ -1 +1 @@
+new
\\ No newline at end of file
diff --git a/gone.py b/gone.py
deleted file mode 100644
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-x
"""
    [a, gone] = parse(diff)
    assert a.hunks == (
        Hunk(1, 0, 2, 1, b"", b"--- not a header\n"),
        Hunk(4, 2, 6, 1, b"old\n@@ -1 +1 @@\n", b"new"),
    )
    assert (a.status, a.lines, a.cuts) == ("modified", ((2, 2), (6, 6)), ())
    assert gone == DiffFile("gone.py", "deleted", (Hunk(1, 1, 0, 0, b"x\n"),))
    assert parse(diff, complete=False) == (a,)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (
            b"diff --git a/x y b/x y\nnew file mode 100644\nindex 0..1\nBinary files /dev/null and b/x y differ\n",
            DiffFile("x y", "added", binary=True),
        ),
        (b"diff --git a/b/b/c b/b/b/c\nold mode 100644\nnew mode 100755\n", DiffFile("b/b/c", "modified")),
        (
            b'diff --git "a/q\\".py" "b/q\\".py"\nnew file mode 100644\nindex 0..1\n',
            DiffFile('q".py', "added"),
        ),
        (
            b'diff --git a/x.py "b/caf\\303\\251\\t.py"\nsimilarity index 100%\nrename from x.py\n'
            b'rename to "caf\\303\\251\\t.py"\n',
            DiffFile("caf\u00e9\t.py", "renamed", old_path="x.py"),
        ),
    ],
)
def test_files_without_hunks(block: bytes, expected: DiffFile) -> None:
    assert parse(block) == (expected,)


def test_combined_diffs_are_passed_over() -> None:
    diff = b"diff --cc a.py\nindex 1,2..0\n--- a/a.py\n+++ b/a.py\n"
    diff += b"@@@ -1,1 -1,1 +1,2 @@@\n- x\n -y\n++z\n* Unmerged path a.py\n"
    assert parse(diff) == ()


LINES = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=14).map(
    lambda found: "".join(f"{line}\n" for line in found).encode()
)


@given(old=LINES, new=LINES)
@settings(max_examples=200, deadline=None)
def test_hunks_between_two_texts_turn_one_into_the_other(old: bytes, new: bytes) -> None:
    lines, out, at = old.split(b"\n"), [], 0
    for hunk in between(old, new):
        start = hunk.old_start - 1 if hunk.old_count else hunk.old_start
        out += lines[at:start]
        assert len(out) == (hunk.new_start - 1 if hunk.new_count else hunk.new_start)
        out += hunk.added.split(b"\n")[:-1]
        assert b"".join(line + b"\n" for line in lines[start : start + hunk.old_count]) == hunk.removed
        at = start + hunk.old_count
    assert b"\n".join([*out, *lines[at:]]) == new


@given(
    keep=st.lists(st.booleans(), min_size=12, max_size=12),
    extra=st.sets(st.integers(0, 12)),
    first=st.integers(1, 12),
    n=st.integers(0, 5),
)
@settings(max_examples=200, deadline=None)
def test_lines_that_stay_are_found_again(keep: list[bool], extra: set[int], first: int, n: int) -> None:
    new = ["new 0"] if 0 in extra else []
    for number, line in enumerate(NUMBERED, 1):
        new += [line] if keep[number - 1] else []
        new += [f"new {number}"] if number in extra else []
    hunks = between("\n".join([*NUMBERED, ""]).encode(), "\n".join([*new, ""]).encode())
    last = min(first + n, 12)
    covered = {line for a, b in through([(first, last)], hunks) for line in range(a, b + 1)}
    for number in range(1, 13):
        if keep[number - 1]:
            place = new.index(NUMBERED[number - 1]) + 1
            assert line_through(number, hunks) == place
            assert (place in covered) == (first <= number <= last)


def test_a_very_different_text_is_one_hunk() -> None:
    old, new = (b"".join(b"%s %d\n" % (word, n) for n in range(3000)) for word in (b"old", b"new"))
    [hunk] = between(b"same\n" + old, b"same\n" + new)
    assert (hunk.old_start, hunk.old_count, hunk.new_start, hunk.new_count) == (2, 3000, 2, 3000)


def test_ranges_that_touch_are_joined() -> None:
    assert joined([(5, 6), (1, 2), (3, 3), (9, 9)]) == ((1, 3), (5, 6), (9, 9))
