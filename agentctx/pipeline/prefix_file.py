"""A prefix as a safetensors file: `ids`, then `000.keys`, `000.values`, `001.keys`, ..., then `states.016`, ...

Tokens come first in every tensor, so that the beginning of a prefix is the beginning of each, and is read by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agentctx.errors import ModelUnavailable
from agentctx.models.safetensors_file import TensorEntry, header_bytes, read_entries
from agentctx.prompt import Int32
from agentctx.spec.prefix import KnownPrefix

SUFFIX = ".safetensors"
_STATES = "states."
_DTYPES = {"<f4": "F32", "<i4": "I32"}
DAMAGE = (ModelUnavailable, OSError, ValueError, KeyError)


@dataclass(frozen=True, slots=True, eq=False)
class PrefixFile:
    """What a file holds. Tensors are read when they are asked for."""

    path: Path
    ids: Int32
    n_layers: int
    depths: frozenset[int]
    entries: dict[str, TensorEntry]

    def read(self, n_tokens: int, n_layers: int, depths: tuple[int, ...]) -> KnownPrefix:
        """Of the first tokens and layers. Raises one of DAMAGE."""
        keys, values = (
            [self._heads(f"{n:03}.{kind}", n_tokens) for n in range(n_layers)] for kind in ("keys", "values")
        )
        states = {depth: np.array(self._tensor(f"{_STATES}{depth:03}")[:n_tokens]) for depth in depths}
        return KnownPrefix(self.ids[:n_tokens], tuple(keys), tuple(values), states)

    def _heads(self, name: str, n_tokens: int) -> Any:
        return np.ascontiguousarray(np.transpose(self._tensor(name)[:n_tokens], (1, 0, 2)))

    def _tensor(self, name: str) -> Any:
        return _mapped(self.path, self.entries, name)


def open_prefix(path: Path) -> PrefixFile:
    """Raises FileNotFoundError, or another of DAMAGE."""
    if not path.exists():
        raise FileNotFoundError(path)
    entries = {entry.name: entry for entry in read_entries(path)}
    return PrefixFile(
        path=path,
        ids=np.array(_mapped(path, entries, "ids"), np.int32),
        n_layers=sum(name.endswith(".keys") for name in entries),
        depths=frozenset(int(name.removeprefix(_STATES)) for name in entries if name.startswith(_STATES)),
        entries=entries,
    )


def parts_of(prefix: KnownPrefix) -> list[Any]:
    """What a file of it holds, one piece after the other."""
    arrays: dict[str, Any] = {"ids": np.ascontiguousarray(prefix.ids, "<i4")}
    for layer, (keys, values) in enumerate(zip(prefix.keys, prefix.values, strict=True)):
        for kind, one in (("keys", keys), ("values", values)):
            arrays[f"{layer:03}.{kind}"] = np.ascontiguousarray(np.transpose(one, (1, 0, 2)), "<f4")
    for depth in sorted(prefix.states):
        arrays[f"{_STATES}{depth:03}"] = np.ascontiguousarray(prefix.states[depth], "<f4")
    entries = [TensorEntry(name, _DTYPES[one.dtype.str], one.shape) for name, one in arrays.items()]
    return [header_bytes(entries, {"format": "agentctx-prefix"}), *(one.data for one in arrays.values())]


def _mapped(path: Path, entries: dict[str, TensorEntry], name: str) -> Any:
    """A tensor as a map of the file: what isn't looked at isn't read."""
    order = ["ids", *sorted(other for other in entries if other != "ids")]  # states sort behind numbers
    start = path.stat().st_size - sum(entry.n_bytes for entry in entries.values())
    offset = start + sum(entries[other].n_bytes for other in order[: order.index(name)])
    dtype = {"F32": "<f4", "I32": "<i4"}[entries[name].dtype]
    return np.memmap(path, dtype, "r", offset, entries[name].shape)
