"""The `search-replace` format: a path line, then SEARCH and REPLACE blocks. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agentctx.edit.answer import placeholder
from agentctx.edit.apply import collect
from agentctx.edit.matching import block_hunks
from agentctx.edit.target import EditTarget
from agentctx.edit.text import FileText
from agentctx.errors import EditFormatError
from agentctx.prompt import EditPatch, Hunk
from agentctx.spans import ByteSpan

_SEARCH = re.compile(r"^\s*<{5,9} ?SEARCH\b.*$")
_DIVIDER = re.compile(r"^\s*={5,9}\s*$")
_REPLACE = re.compile(r"^\s*>{5,9} ?REPLACE\b.*$")
_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,})\s*[\w+.#-]*\s*(?P<rest>.*)$")
_DECORATION = re.compile(r"^(?:[#*>\-\s]+|//\s*)?(?:(?:file(?:name)?|path)\s*[:=]\s*)?", re.IGNORECASE)
_PATH_LINES_BEFORE = 4


@dataclass(frozen=True, slots=True)
class Block:
    """`parts` are the lines between SEARCH and REPLACE, cut at every divider line; `dividers` are those lines."""

    line: int  # of SEARCH in the answer, 1-based
    before: tuple[str, ...]  # the lines just before SEARCH, nearest first
    parts: tuple[tuple[str, ...], ...]
    dividers: tuple[str, ...]

    def readings(self) -> Iterator[tuple[list[str], list[str]]]:
        """(old, new) for each divider taken as the one that counts: text may hold lines of equal signs itself.

        The middle one comes first: what SEARCH holds, REPLACE mostly holds too.
        """
        for cut in sorted(range(1, len(self.parts)), key=lambda cut: abs(2 * cut - len(self.parts))):
            yield self._join(0, cut), self._join(cut, len(self.parts))

    def _join(self, first: int, end: int) -> list[str]:
        lines = list(self.parts[first])
        for number in range(first + 1, end):
            lines += [self.dividers[number - 1], *self.parts[number]]
        return lines


class SearchReplace:
    """`EditFormat` for any number of files."""

    name = "search-replace"

    def parse(self, text: str, target: EditTarget | None, read: Callable[[str], bytes]) -> EditPatch:
        blocks = parse_blocks(text)
        if not blocks:
            raise EditFormatError("the answer holds no SEARCH/REPLACE block")
        edits: list[tuple[str, bytes | None, list[Hunk]]] = []
        notes: list[str] = []
        path = target.path if target else None
        for block in blocks:
            path, old, said = _path_of(block, path, read)
            hunks, note = _hunks(block, path, old)
            notes += filter(None, (said, note))
            edits.append((path, old, hunks))
        files = collect(edits)
        if not files:
            raise EditFormatError("the answer changes nothing: SEARCH and REPLACE are the same")
        return EditPatch(files, tuple(dict.fromkeys(notes)))


def parse_blocks(text: str) -> list[Block]:
    """The SEARCH/REPLACE blocks in order.

    Raises:
        EditFormatError: a block without its divider or without its end.
    """
    lines = [line.rstrip("\r") for line in text.split("\n")]
    blocks: list[Block] = []
    at = 0
    while at < len(lines):
        if not _SEARCH.match(lines[at]):
            at += 1
            continue
        end = next((n for n in range(at + 1, len(lines)) if _REPLACE.match(lines[n]) or _SEARCH.match(lines[n])), None)
        if end is None or _SEARCH.match(lines[end]):
            raise EditFormatError(f"the block that starts at line {at + 1} of the answer has no >>>>>>> REPLACE line")
        blocks.append(_block(lines, at, end))
        at = end + 1
    return blocks


def _block(lines: list[str], start: int, end: int) -> Block:
    parts: list[list[str]] = [[]]
    dividers = []
    for line in lines[start + 1 : end]:
        if _DIVIDER.match(line):
            dividers.append(line)
            parts.append([])
        else:
            parts[-1].append(line)
    if not dividers:
        raise EditFormatError(f"the block that starts at line {start + 1} of the answer has no ======= line")
    before = tuple(reversed(lines[max(0, start - _PATH_LINES_BEFORE) : start]))
    return Block(start + 1, before, tuple(map(tuple, parts)), tuple(dividers))


def _path_of(block: Block, last: str | None, read: Callable[[str], bytes]) -> tuple[str, bytes | None, str]:
    """The block's path, the file's content (None = a new file), and a note where the path was inferred."""
    creates = not any(line.strip() for line in next(block.readings())[0])
    named = [path for path in map(path_in, block.before) if path]
    for path in named:
        data = _read_or_none(read, path)
        if data is not None:
            return path, data, ""
    if named and (creates or last is None):
        if creates:
            return named[0], None, ""
        raise EditFormatError(f"there is no file {named[0]!r} (line {block.line} of the answer)")
    if last is None:
        raise EditFormatError(f"the block at line {block.line} of the answer names no file")
    note = f"{named[0]!r} is no file of the repository; the block was taken for {last}" if named else ""
    return last, _read_or_none(read, last), note


def path_in(line: str) -> str | None:
    """The path that a line names: bare, in backticks, after `#`, `File:` or a fence's language; else None."""
    if _REPLACE.match(line) or _SEARCH.match(line):
        return None
    fence = _FENCE.match(line)
    text = fence["rest"] if fence else line
    text = _DECORATION.sub("", text.strip(), count=1).strip().rstrip(":*").strip().strip("`'\"*")
    if not text or " " in text or "\t" in text:
        return None
    return text if "/" in text or "." in text.strip(".") else None


def _read_or_none(read: Callable[[str], bytes], path: str) -> bytes | None:
    try:
        return read(path)
    except FileNotFoundError:
        return None


def _hunks(block: Block, path: str, old: bytes | None) -> tuple[list[Hunk], str]:
    readings = list(block.readings())
    problem: EditFormatError | None = None
    for search, replace in readings:
        try:
            return _block_hunks(path, old, search, replace)
        except EditFormatError as error:
            problem = problem or error
    assert problem is not None  # there is at least one divider
    raise problem


def _block_hunks(path: str, old: bytes | None, search: list[str], replace: list[str]) -> tuple[list[Hunk], str]:
    if not any(line.strip() for line in search):
        if old:
            raise EditFormatError(f"{path} exists, so an empty SEARCH block can't say where the new lines go")
        return [Hunk(ByteSpan(0, 0), "".join(f"{line}\n" for line in replace).encode())], ""
    file = FileText.read(path, old or b"")
    gap = placeholder(replace, "\n".join([*search, *file.lines]))
    if gap:
        raise EditFormatError(f"the answer leaves code out: {gap!r}")
    return block_hunks(file, search, replace)
