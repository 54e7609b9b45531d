"""Diffs of the index, the work tree and unsaved buffers -> the task's changes, in lines of what is indexed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentctx.diff import DiffFile, Hunk, joined, line_through, through
from agentctx.prompt import ChangeSource, FileChange
from agentctx.repo.languages import is_test_path
from agentctx.repo.scan_rules import by_name
from agentctx.spans import LineSpan

TEXT_LIMIT = 64 * 1024  # bytes of added and of removed text, per file


def changes_of(
    diffs: Mapping[ChangeSource, Sequence[DiffFile]],
    data: Mapping[str, bytes],
    buffers: Mapping[str, Sequence[Hunk]],
    untracked: Sequence[str] = (),
) -> tuple[FileChange, ...]:
    """The changes to files that are indexed or, when deleted, would have been; sorted by path and source.

    `data`: what is indexed. `buffers`: per path, the hunks from the file on disk to the unsaved buffer. Lines of the
    staged version are moved through the unstaged diff. A buffer's own edits are a change of their own.
    """
    unstaged = {file.path: file.hunks for file in diffs.get(ChangeSource.UNSTAGED, ())}
    found = []
    for source, files in diffs.items():
        for file in files:
            if not _counts(file, data):
                continue
            later = [unstaged.get(file.path, ())] if source is ChangeSource.STAGED else []
            found.append(_change(file, source, [*later, buffers.get(file.path, ())]))
    source = ChangeSource.SINCE if ChangeSource.SINCE in diffs else ChangeSource.UNSTAGED
    found += [_untracked(path, data[path], source) for path in untracked if path in data]
    found += [_buffer(path, hunks, source) for path, hunks in buffers.items() if path in data]
    return tuple(sorted(found, key=lambda change: (change.path, change.source.value)))


def _counts(file: DiffFile, data: Mapping[str, bytes]) -> bool:
    return by_name(file.path) is None if file.status == "deleted" else file.path in data


def _change(file: DiffFile, source: ChangeSource, later: Sequence[Sequence[Hunk]]) -> FileChange:
    lines, cuts = file.lines, file.cuts
    for hunks in later:
        lines, cuts = through(lines, hunks), tuple(line_through(line, hunks) for line in cuts)
    return FileChange(
        path=file.path,
        source=source,
        status=file.status,
        lines=tuple(LineSpan(first, last) for first, last in joined(lines)) if file.status != "deleted" else (),
        cuts=cuts if file.status != "deleted" else (),
        added=_text([hunk.added for hunk in file.hunks]),
        removed=_text([hunk.removed for hunk in file.hunks]),
        old_path=file.old_path,
        is_test=is_test_path(file.path),
        binary=file.binary,
    )


def _untracked(path: str, data: bytes, source: ChangeSource) -> FileChange:
    n_lines = data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)
    lines = (LineSpan(1, n_lines),) if n_lines else ()
    return FileChange(path, source, "added", lines, added=_text([data]), is_test=is_test_path(path))


def _buffer(path: str, hunks: Sequence[Hunk], source: ChangeSource) -> FileChange:
    """What an unsaved buffer holds against the file on disk."""
    return _change(DiffFile(path, "modified", tuple(hunks)), source, [])


def _text(parts: Sequence[bytes]) -> str:
    """Undecodable bytes are replaced: the text is for comparing words."""
    whole = b""
    for part in parts:
        if len(whole) >= TEXT_LIMIT:
            break
        whole += part
    return whole[:TEXT_LIMIT].decode("utf-8", "replace")
