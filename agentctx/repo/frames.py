"""What a worker says of one file, as bytes on a pipe: a length, a JSON header, the binary parts. Pure."""

from __future__ import annotations

import json
import struct
from typing import BinaryIO

from agentctx.repo.catalog_row import CatalogRow
from agentctx.repo.entry import FileEntry
from agentctx.repo.examine import Examined

HELLO = b"agentctx\n"  # what a worker says once it has come up
_LENGTH = struct.Struct("<I")


def write_frame(out: BinaryIO, found: Examined) -> None:
    entry, row = found.entry, found.row
    what = (entry.digest, entry.language, entry.is_test, entry.n_bytes) if entry is not None else None
    blob = found.encoded()
    parts = (row.terms, row.counts, row.defs, blob or b"")
    header = (found.path, found.reason, what, row.n_words, blob is not None, [len(part) for part in parts])
    raw = json.dumps(header).encode()
    out.write(b"".join((_LENGTH.pack(len(raw)), raw, *parts)))


def read_frame(source: BinaryIO) -> Examined | None:
    """None at the end of the stream, also in the middle of a frame: its writer died."""
    start = source.read(_LENGTH.size)
    if len(start) < _LENGTH.size:
        return None
    raw = source.read(length := _LENGTH.unpack(start)[0])
    if len(raw) < length:
        return None
    path, reason, what, n_words, has_blob, sizes = json.loads(raw)
    parts = [source.read(size) for size in sizes]
    if any(len(part) < size for part, size in zip(parts, sizes, strict=True)):
        return None
    entry = FileEntry(path, *what) if what is not None else None
    return Examined(
        path, reason, entry, CatalogRow(parts[0], parts[1], parts[2], n_words), None, parts[3] if has_blob else None
    )
