"""What git says about a change, as data: files and hunks of a `git diff -U0`, and lines moved through hunks. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

Ranges = tuple[tuple[int, int], ...]  # (first, last) lines, 1-based and inclusive, sorted

_DIFFICULT = 2000  # lines between the first and the last difference; above, they count as one hunk


@dataclass(frozen=True, slots=True)
class Hunk:
    """`old_count` lines from `old_start` were replaced by `new_count` lines from `new_start`.

    Lines are 1-based. With a count of 0 the start is the line *after* which the other side's lines stand (0 = top).
    `removed` and `added` are the lines' bytes, each with its newline.
    """

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    removed: bytes = b""
    added: bytes = b""


@dataclass(frozen=True, slots=True)
class DiffFile:
    """One file of a diff. `status`: added, modified, deleted, renamed, copied. `old_path`: where it came from."""

    path: str  # of a deleted file: the path that it had
    status: str
    hunks: tuple[Hunk, ...] = ()
    old_path: str | None = None
    binary: bool = False

    @property
    def lines(self) -> Ranges:
        """The lines of the new side that were added or changed."""
        return tuple((h.new_start, h.new_start + h.new_count - 1) for h in self.hunks if h.new_count)

    @property
    def cuts(self) -> tuple[int, ...]:
        """Lines of the new side (0 = top) after which something was removed and nothing put in its place."""
        return tuple(h.new_start for h in self.hunks if not h.new_count)


# ---------------------------------------------------------------- reading

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def parse(diff: bytes, *, complete: bool = True) -> tuple[DiffFile, ...]:
    """The files of a `-U0` diff with prefixes a/ and b/, by path. Of a diff that was cut off, without the last one.

    Lines end at `\\n` only, as git counts them. Combined diffs (`diff --cc`) are passed over.
    """
    blocks = list(_blocks(diff.split(b"\n")))
    files = (_file(block) for block in (blocks if complete else blocks[:-1]))
    return tuple(sorted((file for file in files if file is not None), key=lambda file: file.path))


def _blocks(lines: Sequence[bytes]) -> Iterator[list[bytes]]:
    """The lines of each file. No line of a hunk begins with a `d`."""
    block: list[bytes] = []
    for line in lines:
        if line.startswith(b"diff --"):
            if block:
                yield block
            block = [line] if line.startswith(b"diff --git ") else []
        elif block:
            block.append(line)
    if block:
        yield block


_STATUS = ((b"new file", "added"), (b"deleted file", "deleted"), (b"rename to ", "renamed"), (b"copy to ", "copied"))
_OTHER_NAME = (b"rename from ", b"copy from ")


def _file(block: Sequence[bytes]) -> DiffFile | None:
    first = next((row for row, line in enumerate(block) if line.startswith(b"@@ ")), len(block))
    status, old, new = "modified", None, None
    for line in block[1:first]:
        status = next((word for start, word in _STATUS if line.startswith(start)), status)
        old = next((_name(line[len(start) :]) for start in _OTHER_NAME if line.startswith(start)), old)
        if line.startswith((b"rename to ", b"copy to ")):
            new = _name(line.partition(b" to ")[2])
        elif line.startswith((b"+++ ", b"--- ")) and not line.startswith(b"+++ /dev/null"):
            new = new or (None if line.startswith(b"--- /dev/null") else _prefixed(line[4:]))
    path = new or _of_header(block[0])
    binary = any(line.startswith(b"Binary files ") for line in block[1:first])
    if path is None:
        return None
    return DiffFile(path, status, tuple(_hunks(block[first:])), old, binary)


def _hunks(lines: Sequence[bytes]) -> Iterator[Hunk]:
    at = 0
    while at < len(lines):
        match = _HUNK.match(lines[at])
        at += 1
        if match is None:
            continue
        old, new = int(match[2] or 1), int(match[4] or 1)
        removed, at = _side(lines, at, old)
        added, at = _side(lines, at, new)
        yield Hunk(int(match[1]), old, int(match[3]), new, removed, added)


def _side(lines: Sequence[bytes], at: int, count: int) -> tuple[bytes, int]:
    """`count` lines without their sign, and the row after them and after git's word on a missing newline."""
    text = b"".join(line[1:] + b"\n" for line in lines[at : at + count])
    at += count
    if count and at < len(lines) and lines[at].startswith(b"\\"):
        return text[:-1], at + 1
    return text, at


def _prefixed(name: bytes) -> str:
    """A name of a `---` or `+++` line: git puts a tab behind one with blanks."""
    return _name(name.removesuffix(b"\t"))[2:]


def _of_header(line: bytes) -> str | None:
    """The name in `diff --git a/NAME b/NAME`, where no other line says it; both are the same then."""
    names = line.removeprefix(b"diff --git ")
    half = names[: (len(names) - 1) // 2]
    one, other = _name(half), _name(names[len(half) + 1 :])
    return one[2:] if one[2:] == other[2:] else None


_ESCAPES = dict(zip(b'abtnvfr"\\', b'\a\b\t\n\v\f\r"\\', strict=True))


def _name(name: bytes) -> str:
    """The name, which git puts between quotes, as in C, because of a control character, a quote or a backslash."""
    if name.startswith(b'"'):
        name = re.sub(rb"\\([0-7]{3}|.)", _unescaped, name[1:-1])
    return name.decode("utf-8", "surrogateescape")


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([_ESCAPES[code[0]] if len(code) == 1 else int(code, 8)])


# ---------------------------------------------------------------- lines through hunks


def through(lines: Iterable[tuple[int, int]], hunks: Sequence[Hunk]) -> Ranges:
    """Where the old side's line ranges are on the new side. A line that a hunk replaces becomes the hunk's lines."""
    found: list[tuple[int, int]] = []
    for first, last in lines:
        at, shift = first, 0
        for hunk in hunks:
            start = hunk.old_start + (0 if hunk.old_count else 1)
            end = start + hunk.old_count
            if start > last:
                break
            if at < start:
                found.append((at + shift, start - 1 + shift))
            if hunk.old_count and end > at and hunk.new_count:
                found.append((hunk.new_start, hunk.new_start + hunk.new_count - 1))
            at = max(at, end)
            shift += hunk.new_count - hunk.old_count
        if at <= last:
            found.append((at + shift, last + shift))
    return joined(found)


def line_through(line: int, hunks: Sequence[Hunk]) -> int:
    """Where a line of the old side is on the new side; the line before the hunk for one that a hunk removes."""
    shift = 0
    for hunk in hunks:
        start = hunk.old_start + (0 if hunk.old_count else 1)
        if start > line:
            break
        if line < start + hunk.old_count:
            return max(start + shift - 1, 0)
        shift += hunk.new_count - hunk.old_count
    return line + shift


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Sorted ranges; those that touch or overlap become one."""
    out: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if out and first <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], last))
        else:
            out.append((first, last))
    return tuple(out)


def between(old: bytes, new: bytes) -> tuple[Hunk, ...]:
    """The hunks that turn one text into another: what an editor holds against what is on disk."""
    a, b = old.split(b"\n"), new.split(b"\n")
    head = _common(a, b)
    tail = _common(a[head:][::-1], b[head:][::-1])
    a, b = a[head : len(a) - tail], b[head : len(b) - tail]
    if len(a) + len(b) > _DIFFICULT:
        return (_hunk(head, a, b),)
    codes = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return tuple(_hunk(head, a[i:j], b[k:m], i, k) for tag, i, j, k, m in codes if tag != "equal")


def _common(a: Sequence[bytes], b: Sequence[bytes]) -> int:
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _hunk(head: int, old: Sequence[bytes], new: Sequence[bytes], at_old: int = 0, at_new: int = 0) -> Hunk:
    return Hunk(
        head + at_old + (1 if old else 0),
        len(old),
        head + at_new + (1 if new else 0),
        len(new),
        b"".join(line + b"\n" for line in old),
        b"".join(line + b"\n" for line in new),
    )
