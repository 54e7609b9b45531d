"""Where a block of old lines stands in a file, and the hunks that turn it into the new lines. Pure.

A block must match exactly one place. Whitespace is tolerated in steps (line ends, then one uniform shift of the
indentation, then blank lines around the block), and what was tolerated is said in a note.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agentctx.edit.text import FileText, indent_of
from agentctx.errors import EditFormatError
from agentctx.prompt import Hunk


@dataclass(frozen=True, slots=True)
class Shift:
    """A uniform change of indentation: `remove` is taken off the front of a line, then `add` is put there."""

    remove: str = ""
    add: str = ""

    def apply(self, line: str) -> str:
        if not line.strip() or not line.startswith(self.remove):
            return line
        return self.add + line[len(self.remove) :]


@dataclass(frozen=True, slots=True)
class Match:
    """Lines `first <= i < first + n` (0-based) of the file."""

    first: int
    n: int
    shift: Shift = Shift()
    tolerated: str = ""  # '' = the match is exact


def block_hunks(file: FileText, old: Sequence[str], new: Sequence[str]) -> tuple[list[Hunk], str]:
    """Hunks for the lines that differ between `old` and `new`, and a note ('' for an exact match).

    Lines that are equal in both keep the file's own bytes.

    Raises:
        EditFormatError: no place or more than one place matches.
    """
    match, old, new = _locate(file, list(old), list(new))
    hunks = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            lines = [match.shift.apply(line) for line in new[c:d]]
            hunks.append(replace_lines(file, match.first + a, match.first + b, lines))
    if not match.tolerated:
        return hunks, ""
    return hunks, f"{file.path}:{match.first + 1}: matched up to {match.tolerated}"


def replace_lines(file: FileText, first: int, end: int, lines: Sequence[str]) -> Hunk:
    """Replace whole lines `first <= i < end`; a missing newline at the end of the file stays missing."""
    span = file.span(first, end)
    text = "".join(f"{line}\n" for line in lines)
    at_end = end == len(file.lines) and bool(file.lines)
    unfinished = at_end and not file.data.endswith((b"\n", b"\r"))
    if not unfinished:
        return Hunk(span, file.encode(text))
    if first == end:  # after an unfinished last line
        return Hunk(span, file.encode("\n" + text[:-1]))
    if not lines and first:  # the line before becomes the last one and stays unfinished
        before = file.span(first - 1, first)
        ending = len(file.data[before.start : before.end].rstrip(b"\r\n"))
        return Hunk(type(span)(before.start + ending, span.end), b"")
    return Hunk(span, file.encode(text[:-1]))


def _locate(file: FileText, old: list[str], new: list[str]) -> tuple[Match, list[str], list[str]]:
    match = find_unique(file, old)
    if match is not None:
        return match, old, new
    inner_old, inner_new = _without_blank_ends(old, new)
    if inner_old and inner_old != old:
        match = find_unique(file, inner_old)
        if match is not None:
            how = " and ".join(filter(None, (match.tolerated, "blank lines around the block")))
            return Match(match.first, match.n, match.shift, how), inner_old, inner_new
    raise EditFormatError(no_match_message(file, old), hint="copy the old lines exactly as they stand in the file")


def _without_blank_ends(old: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    while old and not old[0].strip():
        old, new = old[1:], new[1:] if new and not new[0].strip() else new
    while old and not old[-1].strip():
        old, new = old[:-1], new[:-1] if new and not new[-1].strip() else new
    return old, new


def find_unique(file: FileText, block: Sequence[str]) -> Match | None:
    """The only place where `block` stands, None where it stands nowhere.

    Raises:
        EditFormatError: several places match equally well.
    """
    for step in (_exact, _trailing, _shifted):
        found = step(file.lines, block)
        if len(found) > 1:
            where = " and ".join(f"{file.path}:{match.first + 1}" for match in found[:2])
            more = f" (and {len(found) - 2} more)" if len(found) > 2 else ""
            raise EditFormatError(
                f"the old lines match more than one place: {where}{more}",
                hint="include more lines around the change, so that only one place matches",
            )
        if found:
            return found[0]
    return None


def _places(lines: Sequence[str], block: Sequence[str], same: Callable[[str, str], bool]) -> list[int]:
    n = len(block)
    if not n:
        return []
    return [
        at
        for at in range(len(lines) - n + 1)
        if same(lines[at], block[0]) and all(same(lines[at + i], block[i]) for i in range(1, n))
    ]


def _exact(lines: Sequence[str], block: Sequence[str]) -> list[Match]:
    return [Match(at, len(block)) for at in _places(lines, block, str.__eq__)]


def _trailing(lines: Sequence[str], block: Sequence[str]) -> list[Match]:
    places = _places(lines, block, lambda a, b: a.rstrip() == b.rstrip())
    return [Match(at, len(block), tolerated="whitespace at line ends") for at in places]


def _shifted(lines: Sequence[str], block: Sequence[str]) -> list[Match]:
    if not any(line.strip() for line in block):
        return []
    found = []
    for at in _places(lines, block, lambda a, b: a.strip() == b.strip()):
        shift = uniform_shift(block, lines[at : at + len(block)])
        if shift is not None:
            found.append(Match(at, len(block), shift, "indentation"))
    return found


def uniform_shift(block: Sequence[str], lines: Sequence[str]) -> Shift | None:
    """The one shift that turns each line of `block` into that of `lines` (line ends aside), if there is one."""
    pairs = [(b.rstrip(), f.rstrip()) for b, f in zip(block, lines, strict=True) if b.strip()]
    ours, theirs = indent_of(pairs[0][0]), indent_of(pairs[0][1])
    if theirs.endswith(ours):
        shift = Shift(add=theirs[: len(theirs) - len(ours)])
    elif ours.endswith(theirs):
        shift = Shift(remove=ours[: len(ours) - len(theirs)])
    else:
        shift = Shift(ours, theirs)
    return shift if all(shift.apply(b) == f for b, f in pairs) else None


def no_match_message(file: FileText, block: Sequence[str]) -> str:
    """What to tell when `block` matches nowhere: the closest lines, by number."""
    wanted = [line for line in block if line.strip()]
    if not wanted:
        return f"{file.path}: there are no old lines to look for"
    first = wanted[0].strip()
    at = _closest(file.lines, block)
    if at is None:
        return f"{file.path}: no line matches {first!r}"
    shown = "\n".join(f"  {i + 1}: {file.lines[i]}" for i in range(at, min(at + len(block), at + 6, len(file.lines))))
    return f"{file.path}: the old lines, starting with {first!r}, match nowhere; the closest lines are\n{shown}"


def _closest(lines: Sequence[str], block: Sequence[str]) -> int | None:
    """The start for which most lines agree; else the line most similar to the block's first one."""
    votes: Counter[int] = Counter()
    by_text: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        by_text.setdefault(line.strip(), []).append(number)
    for offset, line in enumerate(block):
        if line.strip():
            votes.update(max(0, at - offset) for at in by_text.get(line.strip(), ()))
    if votes:
        return min(votes, key=lambda at: (-votes[at], at))
    first = next(line.strip() for line in block if line.strip())
    similar = difflib.get_close_matches(first, sorted(by_text), n=1, cutoff=0.5)
    return by_text[similar[0]][0] if similar else None
