"""An EditPatch's effect on bytes, and the check that Python stays Python. Pure."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterable
from itertools import pairwise

from agentctx.errors import EditError, EditFormatError
from agentctx.prompt import EditPatch, FileEdit, Hunk


def digest(data: bytes | None) -> str:
    """SHA-256 in hex; '' for a file that isn't there."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def apply_edit(old: bytes | None, edit: FileEdit) -> bytes:
    """The file's new content.

    Raises:
        EditError: `old` is not what the hunks refer to, or the hunks overlap.
    """
    if digest(old) != edit.base_digest:
        raise EditError(f"{edit.path} is not the file that the edit was made for")
    data = old or b""
    hunks = sorted(edit.hunks, key=lambda hunk: hunk.span)
    if any(a.span.end > b.span.start for a, b in pairwise(hunks)) or (hunks and hunks[-1].span.end > len(data)):
        raise EditError(f"{edit.path}: the hunks overlap or leave the file")
    out, at = [], 0
    for hunk in hunks:
        out += [data[at : hunk.span.start], hunk.new]
        at = hunk.span.end
    return b"".join([*out, data[at:]])


def new_contents(patch: EditPatch, read: Callable[[str], bytes | None]) -> dict[str, bytes]:
    """Path -> new content, sorted by path."""
    return {edit.path: apply_edit(read(edit.path), edit) for edit in sorted(patch.files, key=lambda e: e.path)}


def collect(edits: Iterable[tuple[str, bytes | None, list[Hunk]]]) -> tuple[FileEdit, ...]:
    """One FileEdit per path, sorted, from (path, old content, hunks) items.

    Raises:
        EditFormatError: two blocks change the same lines.
    """
    base: dict[str, str] = {}
    hunks: dict[str, list[Hunk]] = {}
    for path, old, found in edits:
        base[path] = digest(old)
        hunks.setdefault(path, []).extend(found)
    for path, found in hunks.items():
        ordered = sorted(found, key=lambda hunk: hunk.span)
        for a, b in pairwise(ordered):
            if a.span.end > b.span.start or a.span == b.span:
                raise EditFormatError(f"{path}: two blocks change the same lines")
    return tuple(
        FileEdit(path, base[path], tuple(sorted(hunks[path], key=lambda hunk: hunk.span)))
        for path in sorted(hunks)
        if hunks[path]
    )


def check_syntax(path: str, old: bytes | None, new: bytes) -> str | None:
    """None if `new` may land; a note where that can't be told because `old` doesn't compile either.

    Raises:
        EditFormatError: a Python file that compiled doesn't any more.
    """
    if not path.endswith((".py", ".pyi")):
        return None
    if old is not None and _compile_error(path, old):
        return f"{path} didn't compile before the edit; its syntax was not checked"
    problem = _compile_error(path, new)
    if problem:
        raise EditFormatError(f"{path} would not compile: {problem}")
    return None


def _compile_error(path: str, source: bytes) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes, `is` with a literal, ...: not ours to judge
        try:
            compile(source, path, "exec", dont_inherit=True)
        except SyntaxError as error:
            return f"line {error.lineno}: {error.msg}"
        except (ValueError, RecursionError, MemoryError, LookupError) as error:
            return str(error) or type(error).__name__
    return None
