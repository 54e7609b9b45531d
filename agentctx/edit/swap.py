"""Change several files so that at every moment each has its old or its new bytes.

All new content is written beside the files first, so a full disk or a missing right shows before anything changes;
then one rename per file. The journal, written before, knows every name that can be left behind.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from agentctx.edit.durable import sync_folder, write_synced
from agentctx.edit.journal import Change, Journal


def current(path: Path) -> bytes | None:
    """The file's bytes, None where there is none. A link or a folder in its place is an OSError."""
    if path.is_symlink():
        raise OSError(f"{path} has become a link")
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def missing_folders(root: Path, changes: Sequence[Change]) -> tuple[str, ...]:
    """Folders that the new files need and that aren't there: parents first."""
    needed: set[str] = set()
    for change in changes:
        parent = Path(change.path).parent
        while str(parent) != "." and not (root / parent).exists():
            needed.add(parent.as_posix())
            parent = parent.parent
    return tuple(sorted(needed))


def stage(root: Path, journal: Journal) -> None:
    """Write every new content, and a second name for every old one, beside the files."""
    for folder in journal.folders:
        (root / folder).mkdir(exist_ok=True)
    for number, change in enumerate(journal.changes):
        path = root / change.path
        if change.old is not None:
            _backup(path, path.with_name(journal.backup_name(number)))
        if change.new is not None:
            _write_like(path, path.with_name(journal.temp_name(number)), change.new)


def commit(root: Path, journal: Journal) -> None:
    """Rename the staged contents into place."""
    for number, change in enumerate(journal.changes):
        path = root / change.path
        if change.new is None:
            path.unlink()
        else:
            os.replace(path.with_name(journal.temp_name(number)), path)
    _sync(root, journal)


def roll_back(root: Path, journal: Journal) -> None:
    """Put the old bytes back where we put the new ones. Other content is left alone; needs no disk space.

    A file whose staged content is still there was not replaced by us: then it's the user who wrote the same bytes.
    """
    for number, change in enumerate(journal.changes):
        path = root / change.path
        if path.with_name(journal.temp_name(number)).exists() or change.state(current(path)) != "new":
            continue
        if change.old is None:
            path.unlink()
            continue
        backup = path.with_name(journal.backup_name(number))
        if not backup.exists() or backup.read_bytes() != change.old:
            _write_like(path, backup, change.old)
        os.replace(backup, path)
    _sync(root, journal)


def clean_up(root: Path, journal: Journal) -> None:
    """Remove what staging left beside the files."""
    for number, change in enumerate(journal.changes):
        for name in (journal.temp_name(number), journal.backup_name(number)):
            (root / change.path).with_name(name).unlink(missing_ok=True)


def remove_folders(root: Path, journal: Journal) -> None:
    """Remove the folders that the landing made, where they are empty."""
    for folder in reversed(journal.folders):
        path = root / folder
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def _backup(path: Path, backup: Path) -> None:
    """The old file under a second name: a hard link keeps everything about it, else a copy."""
    backup.unlink(missing_ok=True)
    try:
        os.link(path, backup)
    except OSError:  # a file system without hard links
        shutil.copy2(path, backup)


def _write_like(path: Path, temp: Path, data: bytes) -> None:
    """`data` in a new file with the mode and the owner of `path`, or the usual ones for a new file."""
    temp.unlink(missing_ok=True)
    write_synced(temp, data, 0o666)
    if not path.exists():
        return
    known = path.stat()
    if sys.platform != "win32":
        made = temp.stat()
        if (made.st_uid, made.st_gid) != (known.st_uid, known.st_gid):
            os.chown(temp, known.st_uid, known.st_gid)
    shutil.copystat(path, temp)
    os.utime(temp)  # copystat brings the old time, by which builds would miss the change


def _sync(root: Path, journal: Journal) -> None:
    for folder in sorted({(root / change.path).parent for change in journal.changes}):
        if folder.is_dir():
            sync_folder(folder)
