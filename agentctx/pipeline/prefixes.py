"""What a drafter has read before, in memory and in the user's cache: prefixes of prompts, and values of whole prompts.

A prefix is a safetensors file of ids, keys and values, tokens first, so that its beginning can be read by itself.
Files are written under another name and moved; the oldest go when all are more than CAP bytes. What is damaged, or
can't be written, counts as not there, and is said.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections import OrderedDict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from agentctx.errors import ModelUnavailable
from agentctx.models.safetensors_file import TensorEntry, header_bytes, read_entries
from agentctx.prompt import Float32, Int32, ModelInfo, TokenizedPrompt
from agentctx.spec.prefix import KnownPrefix, common
from agentctx.spec.scorers.queries import failing_units

FOLDER = "drafter"
CAP = 2 << 30  # bytes of all files
MEMORY_CAP = 512 << 20  # bytes of the prefixes that are held in memory
SUFFIX = ".safetensors"
STATES = "states."
MEMO_VERSION = 1  # of the scorers: another one computes other values
_VALUES = ".npy"


@dataclass(slots=True)
class PrefixMemory:
    """Prefixes by file name, those used last at the end; of one process."""

    held: OrderedDict[str, KnownPrefix] = field(default_factory=OrderedDict)

    def put(self, name: str, prefix: KnownPrefix) -> None:
        self.held[name] = prefix
        self.held.move_to_end(name)
        while len(self.held) > 1 and sum(map(n_bytes, self.held.values())) > MEMORY_CAP:
            self.held.popitem(last=False)


@dataclass(slots=True)
class DrafterStore:
    """Implements `spec.prefix.PrefixStore` for the drafter with these weights. `folder`: None = memory only.

    `problems`: sentences for the report, about what could not be read or written.
    """

    digest: str
    folder: Path | None
    memory: PrefixMemory
    problems: list[str] = field(default_factory=list)

    def find(self, ids: Int32, n_layers: int, *, chunk: int, states: tuple[int, ...]) -> KnownPrefix | None:
        best, best_name, length = None, "", 0
        for name, known in self.memory.held.items():
            if name.startswith(self._begin) and _serves(known.n_layers, known.states, n_layers, states):
                n = common(known.ids, ids, chunk)
                if n > length:
                    best, best_name, length = known, name, n
        path, longer = self._on_disk(ids, n_layers, chunk, states, length)
        if path is not None:
            found = self._read(path, longer, n_layers, states=states)
            if found is not None:
                self.memory.put(path.stem, found)
                return found
        if best is None:
            return None
        self.memory.held.move_to_end(best_name)
        return best.first(length, n_layers)

    def keep(self, prefix: KnownPrefix) -> None:
        name = self._begin + hashlib.sha256(_key(prefix)).hexdigest()[:32]
        self.memory.put(name, prefix)
        if self.folder is None:
            return
        arrays = _arrays(prefix)
        entries = [TensorEntry(key, _DTYPES[value.dtype.str], value.shape) for key, value in arrays.items()]
        parts = [header_bytes(entries, {"format": "agentctx-prefix"}), *(value.data for value in arrays.values())]
        if self._write(self.folder / f"{name}{SUFFIX}", parts):
            self._remove_beginnings(prefix, name)
            trim(self.folder, CAP)

    def values(self, key: str) -> Float32 | None:
        """The values of a whole prompt, float32 (T,), kept under a digest of all that they depend on."""
        if self.folder is None:
            return None
        path = self.folder / f"{key}{_VALUES}"
        try:
            found = np.load(path, allow_pickle=False)
            os.utime(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, EOFError) as error:
            self._damaged(path, error)
            return None
        return found if found.dtype == np.float32 and found.ndim == 1 else None

    def keep_values(self, key: str, values: Float32) -> None:
        if self.folder is not None:
            head = _npy_header(values)
            self._write(self.folder / f"{key}{_VALUES}", [head, np.ascontiguousarray(values).data])

    # ------------------------------------------------------------ files

    @property
    def _begin(self) -> str:
        return f"{self.digest[:16]}-"

    def _files(self) -> Iterator[tuple[Path, Int32, int, frozenset[int]]]:
        """(file, its ids, layers, depths of its states) of this drafter's prefixes."""
        if self.folder is None or not self.folder.is_dir():
            return
        for path in sorted(self.folder.glob(f"{self._begin}*{SUFFIX}")):
            try:
                shapes = {entry.name: entry for entry in read_entries(path)}
                ids = np.asarray(_tensor(path, shapes, "ids"))
                layers = sum(name.endswith(".keys") for name in shapes)
            except FileNotFoundError:
                continue  # another process removed it
            except (ModelUnavailable, OSError, ValueError, KeyError) as error:
                self._damaged(path, error)
                continue
            yield (
                path,
                ids.astype(np.int32),
                layers,
                frozenset(int(name[7:]) for name in shapes if name.startswith(STATES)),
            )

    def _on_disk(
        self, ids: Int32, n_layers: int, chunk: int, states: tuple[int, ...], length: int
    ) -> tuple[Path | None, int]:
        """The file that knows more than `length` tokens of the beginning, and how many."""
        best = None
        for path, known, layers, depths in self._files():
            if _serves(layers, depths, n_layers, states):
                n = common(known, ids, chunk)
                if n > length:
                    best, length = path, n
        return best, length

    def _read(self, path: Path, length: int, n_layers: int, *, states: tuple[int, ...]) -> KnownPrefix | None:
        try:
            shapes = {entry.name: entry for entry in read_entries(path)}
            ids = np.array(_tensor(path, shapes, "ids")[:length], np.int32)
            pairs = [
                [
                    np.ascontiguousarray(np.transpose(_tensor(path, shapes, f"{layer:03}.{kind}")[:length], (1, 0, 2)))
                    for layer in range(n_layers)
                ]
                for kind in ("keys", "values")
            ]
            own = {depth: np.array(_tensor(path, shapes, f"{STATES}{depth:03}")[:length]) for depth in states}
            os.utime(path)
        except FileNotFoundError:
            return None  # another process removed it meanwhile
        except (ModelUnavailable, OSError, ValueError, KeyError) as error:
            self._damaged(path, error)
            return None
        return KnownPrefix(ids, tuple(pairs[0]), tuple(pairs[1]), own)

    def _damaged(self, path: Path, error: Exception) -> None:
        reason = error.message if isinstance(error, ModelUnavailable) else str(error)
        self.problems.append(f"the drafter's cache file {path.name} was damaged and is removed: {reason}")
        with contextlib.suppress(OSError):
            path.unlink()

    def _write(self, path: Path, parts: list[Any]) -> bool:
        name = ""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".part-")
            with os.fdopen(handle, "wb") as file:
                for part in parts:
                    file.write(part)
            os.replace(name, path)
        except OSError as error:
            self.problems.append(f"what the drafter read can't be kept in {path.parent}: {error.strerror or error}")
            with contextlib.suppress(OSError):
                os.unlink(name)
            return False
        return True

    def _remove_beginnings(self, prefix: KnownPrefix, name: str) -> None:
        """Files that know nothing that the new one doesn't."""
        for path, ids, layers, depths in list(self._files()):
            n = len(ids)
            begins = n <= len(prefix.ids) and np.array_equal(prefix.ids[:n], ids)
            if path.stem != name and begins and layers <= prefix.n_layers and depths <= set(prefix.states):
                with contextlib.suppress(OSError):
                    path.unlink()
                self.memory.held.pop(path.stem, None)


def memo_key(tokenized: TokenizedPrompt, drafter: ModelInfo, scorer: str, n_layers: int) -> str:
    """A digest of all that the values of a prompt depend on. `scorer`: its identity, with what it was learned from."""
    document = tokenized.document
    asks = sorted(failing_units(document))
    what = f"{MEMO_VERSION} {drafter.weights_digest} {scorer} {n_layers} {asks}"
    found = hashlib.sha256(f"{what} {[(unit.section, unit.kind) for unit in document.units]}".encode())
    found.update(tokenized.ids.astype("<i4").tobytes())
    found.update(tokenized.unit_starts.astype("<i4").tobytes())
    return found.hexdigest()


def trim(folder: Path, cap: int) -> None:
    """Remove the files that were used longest ago until all are at most `cap` bytes; also parts of killed writers."""
    found: list[tuple[float, int, Path]] = []
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            with contextlib.suppress(OSError):
                about = path.stat()
                found.append((about.st_mtime, about.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= cap:
            return
        with contextlib.suppress(OSError):
            path.unlink()
            total -= size


def n_bytes(prefix: KnownPrefix) -> int:
    return sum(one.nbytes for one in (*prefix.keys, *prefix.values, *prefix.states.values()))


_DTYPES = {"<f4": "F32", "<i4": "I32"}


def _serves(layers: int, depths: Collection[int], n_layers: int, states: Collection[int]) -> bool:
    return layers >= n_layers and set(states) <= set(depths)


def _key(prefix: KnownPrefix) -> bytes:
    return f"{prefix.n_layers} {sorted(prefix.states)} ".encode() + prefix.ids.astype("<i4").tobytes()


def _arrays(prefix: KnownPrefix) -> dict[str, Any]:
    """Tokens first."""
    found: dict[str, Any] = {"ids": np.ascontiguousarray(prefix.ids, "<i4")}
    for layer, (keys, values) in enumerate(zip(prefix.keys, prefix.values, strict=True)):
        for kind, one in (("keys", keys), ("values", values)):
            found[f"{layer:03}.{kind}"] = np.ascontiguousarray(np.transpose(one, (1, 0, 2)), "<f4")
    for depth in sorted(prefix.states):
        found[f"{STATES}{depth:03}"] = np.ascontiguousarray(prefix.states[depth], "<f4")
    return found


def _tensor(path: Path, shapes: dict[str, TensorEntry], name: str) -> Any:
    """A tensor as a map of the file: what isn't looked at isn't read. Tensors lie in the order in which they were
    written."""
    order = ["ids", *sorted(other for other in shapes if other != "ids")]  # states sort behind numbers
    before = order[: order.index(name)]
    start = path.stat().st_size - sum(entry.n_bytes for entry in shapes.values())
    offset = start + sum(shapes[other].n_bytes for other in before if other in shapes)
    dtype = {"F32": "<f4", "I32": "<i4"}[shapes[name].dtype]
    return np.memmap(path, dtype, "r", offset, shapes[name].shape)


def _npy_header(values: Float32) -> bytes:
    import io

    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, np.lib.format.header_data_from_array_1_0(np.ascontiguousarray(values)))
    return out.getvalue()
