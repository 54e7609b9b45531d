"""Trees of a repository's history as files to index, read from git's objects: nothing is checked out."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from agentctx import vcs
from agentctx.repo import scan_rules
from agentctx.repo.languages import is_test_path
from agentctx.repo.scan_list import IGNORED
from agentctx.source import SourceFile

_FILES = frozenset({b"100644", b"100755"})


class Trees:
    """A clone, and the blobs of the tree that was read last: commits that follow each other share nearly all."""

    def __init__(self, clone: Path) -> None:
        self.clone = clone
        self._known: dict[tuple[str, str], SourceFile | None] = {}

    def files(self, commit: str, replaced: Mapping[str, str] | None = None) -> tuple[SourceFile, ...]:
        """The files of a commit that can be indexed, by path; `replaced`: path -> object id that stands there instead.

        Raises:
            GitError: the clone doesn't have the commit.
        """
        wanted = {path: oid for path, oid in self.listing(commit).items() if _is_wanted(path)}
        wanted.update({path: oid for path, oid in (replaced or {}).items() if _is_wanted(path)})
        missing = [key for key in wanted.items() if key not in self._known]
        blobs = self.blobs(oid for _, oid in missing)
        made = {(path, oid): _source(path, blobs[oid]) for path, oid in missing}
        self._known = {key: made[key] if key in made else self._known[key] for key in wanted.items()}
        found = (self._known[key] for key in sorted(wanted.items()))
        return tuple(file for file in found if file is not None)

    def listing(self, commit: str) -> dict[str, str]:
        """Path -> object id of the ordinary files of a commit."""
        out: dict[str, str] = {}
        for entry in vcs.run(self.clone, "ls-tree", "-r", "-z", commit).split(b"\0"):
            head, _, path = entry.partition(b"\t")
            fields = head.split()
            if len(fields) == 3 and fields[0] in _FILES:
                out[os.fsdecode(path)] = fields[2].decode()
        return out

    def blobs(self, oids: Iterable[str]) -> dict[str, bytes]:
        """The contents of objects, from one git process."""
        wanted = sorted(set(oids))
        if not wanted:
            return {}
        out = vcs.run(self.clone, "cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in wanted).encode())
        return dict(zip(wanted, _split(out, len(wanted)), strict=True))


def _split(out: bytes, n: int) -> Sequence[bytes]:
    """The contents in git's answer: a line `OID blob SIZE` before each, a newline behind it."""
    found, at = [], 0
    for _ in range(n):
        end = out.index(b"\n", at)
        size = int(out[at:end].split()[-1])
        found.append(out[end + 1 : end + 1 + size])
        at = end + 1 + size + 1
    return found


def _is_wanted(path: str) -> bool:
    """As the scanner of work trees, which also leaves out what git's own listing would not have."""
    return scan_rules.by_name(path) is None and not set(path.split("/")[:-1]).intersection(IGNORED)


def _source(path: str, data: bytes) -> SourceFile | None:
    if scan_rules.by_size(len(data)) or scan_rules.by_content(path, data):
        return None
    language = scan_rules.language_by_content(path, data)
    return SourceFile(path, data, hashlib.sha256(data).hexdigest(), language, is_test_path(path))
