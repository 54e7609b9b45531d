"""The `diff` format: a unified diff whose line numbers are not trusted. Pure.

Small models get the counts in `@@` lines wrong, so a hunk ends where the next one starts and its place is where its
context and removed lines stand, which must be exactly one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from agentctx.edit.answer import fenced_blocks
from agentctx.edit.apply import collect
from agentctx.edit.matching import block_hunks
from agentctx.edit.target import EditTarget
from agentctx.edit.text import FileText
from agentctx.errors import EditFormatError
from agentctx.prompt import EditPatch, Hunk
from agentctx.spans import ByteSpan

_UNSUPPORTED = ("rename from ", "copy from ", "deleted file mode ", "GIT binary patch", "Binary files ")
_NULL = "/dev/null"
_STAMP = re.compile(r"\t.*$| +\d{4}-\d\d-\d\d.*$")


@dataclass(slots=True)
class _FileDiff:
    old: str
    new: str
    hunks: list[list[str]] = field(default_factory=list)


class UnifiedDiff:
    """`EditFormat` for any number of files."""

    name = "diff"

    def parse(self, text: str, target: EditTarget | None, read: Callable[[str], bytes]) -> EditPatch:
        files = parse_diff(text, target.path if target else None)
        if not any(file.hunks for file in files):
            raise EditFormatError("the answer holds no diff hunk (a line that starts with @@)")
        edits: list[tuple[str, bytes | None, list[Hunk]]] = []
        notes: list[str] = []
        for file in files:
            path, old = _resolve(file, read)
            for lines in file.hunks:
                hunks, note = _hunks(path, old, lines)
                notes += [note] if note else []
                edits.append((path, old, hunks))
        patch = collect(edits)
        if not patch:
            raise EditFormatError("the diff changes nothing")
        return EditPatch(patch, tuple(dict.fromkeys(notes)))


def parse_diff(text: str, default: str | None) -> list[_FileDiff]:
    """Files and their hunks' lines. Hunks before any `---` line belong to `default`."""
    blocks = [content for info, content in fenced_blocks(text) if "@@" in content]
    lines = ("\n".join(blocks) if blocks else text).replace("\r\n", "\n").split("\n")
    files: list[_FileDiff] = []
    hunk: list[str] | None = None
    stray = ""
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if line.startswith(_UNSUPPORTED):
            raise EditFormatError(f"only changed and new text files can be edited: {line!r}")
        if line.startswith("--- ") and following.startswith("+++ "):
            files.append(_FileDiff(_name(line), _name(following)))
            hunk, stray = None, ""
        elif line.startswith("@@"):
            if not files:
                files.append(_default_file(default))
            hunk, stray = [], ""
            files[-1].hunks.append(hunk)
        elif line.startswith("diff --git "):
            hunk, stray = None, ""
        elif hunk is not None and line and line[0] not in " +-\\":
            hunk, stray = None, line
        elif hunk is not None:
            hunk.append(line)
        elif stray and line.startswith(("+", "-")):
            raise EditFormatError(f"a line of the diff starts with neither ' ', '+' nor '-': {stray!r}")
    return files


def _default_file(path: str | None) -> _FileDiff:
    if path is None:
        raise EditFormatError("the diff names no file (no --- and +++ lines)")
    return _FileDiff(path, path)


def _name(line: str) -> str:
    return _STAMP.sub("", line[4:]).strip().strip('"')


def _resolve(file: _FileDiff, read: Callable[[str], bytes]) -> tuple[str, bytes | None]:
    if file.new == _NULL:
        raise EditFormatError(f"{file.old}: deleting files is not supported")
    for path in (file.new.removeprefix("b/"), file.new):
        try:
            return path, read(path)
        except FileNotFoundError:
            continue
    if file.old != _NULL:
        raise EditFormatError(f"there is no file {file.new.removeprefix('b/')!r}")
    return file.new.removeprefix("b/"), None


def _hunks(path: str, old: bytes | None, lines: list[str]) -> tuple[list[Hunk], str]:
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    before = [line[1:] for line in lines if not line.startswith(("+", "\\"))]
    after = [line[1:] for line in lines if not line.startswith(("-", "\\"))]
    if old is None:
        ending = "" if lines and lines[-1].startswith("\\") else "\n"
        return [Hunk(ByteSpan(0, 0), ("\n".join(after) + ending).encode())], ""
    if not any(line.strip() for line in before):
        raise EditFormatError(f"{path}: a hunk without context can't say where its lines go")
    return block_hunks(FileText.read(path, old), before, after)
