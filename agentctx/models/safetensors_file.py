"""The safetensors format, as far as writing tensor by tensor and checking a header need it.

A file is: header length (8 bytes, little-endian), JSON header, tensor bytes. The library's own writer wants
all tensors in memory at once, which a 1.5B model on an 8 GB machine can't afford.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from agentctx.errors import ModelUnavailable

_MAX_HEADER = 100_000_000  # the limit of the reference implementation
_ITEM_BYTES = {
    "F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2,
    "I8": 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TensorEntry:
    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def n_values(self) -> int:
        return math.prod(self.shape)

    @property
    def n_bytes(self) -> int:
        return self.n_values * _ITEM_BYTES[self.dtype]


def header_bytes(entries: Sequence[TensorEntry], metadata: Mapping[str, str]) -> bytes:
    """The file's beginning; the tensors' bytes follow in the order of `entries`, without gaps."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    offset = 0
    for entry in entries:
        end = offset + entry.n_bytes
        header[entry.name] = {"dtype": entry.dtype, "shape": list(entry.shape), "data_offsets": [offset, end]}
        offset = end
    raw = json.dumps(header, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)  # tensors start aligned
    return struct.pack("<Q", len(raw)) + raw


def read_entries(path: Path) -> tuple[TensorEntry, ...]:
    """The tensors of a file, by name. Raises ModelUnavailable when the file is cut off or no safetensors file."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            raw = _raw_header(path, file, size)
        entries, end = _entries(json.loads(raw))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(path, f"its header can't be read ({error})") from error
    if 8 + len(raw) + end != size:
        raise damaged(path, f"{size} bytes, but its header describes {8 + len(raw) + end}")
    return entries


def _raw_header(path: Path, file: BinaryIO, size: int) -> bytes:
    start = file.read(8)
    length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
    if not 0 < length <= min(size - 8, _MAX_HEADER):
        raise damaged(path, f"{size} bytes, header of {length} bytes")
    return file.read(length)


def _entries(header: Mapping[str, Any]) -> tuple[tuple[TensorEntry, ...], int]:
    entries, end = [], 0
    for name, info in header.items():
        if name == "__metadata__":
            continue
        entry = TensorEntry(name, str(info["dtype"]), tuple(int(size) for size in info["shape"]))
        first, last = info["data_offsets"]
        if entry.dtype in _ITEM_BYTES and last - first != entry.n_bytes:
            raise ValueError(f"{name}: {last - first} bytes for shape {list(entry.shape)} of {entry.dtype}")
        entries.append(entry)
        end = max(end, last)
    return tuple(sorted(entries, key=lambda entry: entry.name)), end


def damaged(path: Path, why: str) -> ModelUnavailable:
    return ModelUnavailable(f"{path} is damaged: {why}", hint="copy or fetch the model again")
