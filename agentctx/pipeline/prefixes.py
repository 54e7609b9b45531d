"""What a drafter has read before, in memory and in the user's cache: prefixes of prompts, and values of whole prompts.

Files are written under another name and moved; the oldest go when all are more than CAP bytes. What is damaged, or
can't be written, counts as not there, and is said.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import tempfile
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from agentctx.errors import ModelUnavailable
from agentctx.pipeline.prefix_file import DAMAGE, SUFFIX, PrefixFile, open_prefix, parts_of
from agentctx.prompt import Float32, Int32, ModelInfo, TokenizedPrompt
from agentctx.spec.prefix import KnownPrefix, common
from agentctx.spec.scorers.queries import failing_units

FOLDER = "drafter"
CAP = 2 << 30  # bytes of all files
MEMORY_CAP = 512 << 20  # bytes of the prefixes that are held in memory
MEMO_VERSION = 3  # of the scorers: another one computes other values
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

    `form`: what the drafter's keys are held in, and where: those of another form aren't the same to the last bit.
    `problems`: sentences for the report, about what could not be read or written.
    """

    digest: str
    folder: Path | None
    memory: PrefixMemory
    problems: list[str] = field(default_factory=list)
    form: str = ""

    def find(self, ids: Int32, n_layers: int, *, chunk: int, states: tuple[int, ...]) -> KnownPrefix | None:
        best, best_name, length = None, "", 0
        for name, known in self.memory.held.items():
            if name.startswith(self._begin) and _serves(known.n_layers, known.states, n_layers, states):
                n = common(known.ids, ids, chunk)
                if n > length:
                    best, best_name, length = known, name, n
        file = None
        for one in self._files():
            if _serves(one.n_layers, one.depths, n_layers, states) and common(one.ids, ids, chunk) > length:
                file, length = one, common(one.ids, ids, chunk)
        found = self._read(file, length, n_layers, states) if file is not None else None
        if found is not None and file is not None:
            self.memory.put(file.path.stem, found)
            return found
        if best is None:
            return None
        self.memory.held.move_to_end(best_name)
        return best.first(common(best.ids, ids, chunk), n_layers)

    def keep(self, prefix: KnownPrefix) -> None:
        name = self._begin + hashlib.sha256(_key(prefix)).hexdigest()[:32]
        self.memory.put(name, prefix)
        if self.folder is not None and self._write(self.folder / f"{name}{SUFFIX}", parts_of(prefix)):
            self._remove_beginnings(prefix, name)

    def values(self, key: str) -> tuple[Float32, str] | None:
        """The values of a whole prompt, float32 (T,), kept under a digest of all that they depend on; and the form of
        the drafter that computed them."""
        if self.folder is None:
            return None
        path = self.folder / f"{key}{_VALUES}"
        try:
            with path.open("rb") as file:
                found: Float32 = np.load(file, allow_pickle=False)
                form = file.read().decode("ascii")
            if found.dtype != np.float32 or found.ndim != 1:
                raise ValueError(f"{found.ndim} dimensions of {found.dtype}")
            os.utime(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, EOFError) as error:
            self._damaged(path, error)
            return None
        return found, form

    def keep_values(self, key: str, values: Float32) -> None:
        if self.folder is not None:
            file = io.BytesIO()
            np.save(file, np.ascontiguousarray(values), allow_pickle=False)
            self._write(self.folder / f"{key}{_VALUES}", [file.getvalue(), self.form.encode("ascii")])

    # ------------------------------------------------------------ files

    @property
    def _begin(self) -> str:
        return f"{hashlib.sha256(f'{self.digest} {self.form}'.encode()).hexdigest()[:16]}-"

    def _files(self) -> Iterator[PrefixFile]:
        """Of this drafter."""
        if self.folder is None or not self.folder.is_dir():
            return
        for path in sorted(self.folder.glob(f"{self._begin}*{SUFFIX}")):
            try:
                yield open_prefix(path)
            except FileNotFoundError:
                continue  # another process removed it
            except DAMAGE as error:
                self._damaged(path, error)

    def _read(self, file: PrefixFile, n_tokens: int, n_layers: int, states: tuple[int, ...]) -> KnownPrefix | None:
        try:
            found = file.read(n_tokens, n_layers, states)
            os.utime(file.path)
        except FileNotFoundError:
            return None  # another process removed it meanwhile
        except DAMAGE as error:
            self._damaged(file.path, error)
            return None
        return found

    def _damaged(self, path: Path, error: Exception) -> None:
        reason = error.message if isinstance(error, ModelUnavailable) else str(error)
        self.problems.append(f"the drafter's cache file {path.name} was damaged and is removed: {reason}")
        with contextlib.suppress(OSError):
            path.unlink()

    def _write(self, path: Path, parts: Sequence[Any]) -> bool:
        """Whether the file is there, whole; older ones go if it is one too many."""
        partial: Path | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".part-")
            partial = Path(name)
            with os.fdopen(handle, "wb") as file:
                for part in parts:
                    file.write(part)
            os.replace(partial, path)
        except OSError as error:
            self.problems.append(f"what the drafter read can't be kept in {path.parent}: {error.strerror or error}")
            return False
        finally:
            if partial is not None:
                partial.unlink(missing_ok=True)
        trim(path.parent, CAP)
        return True

    def _remove_beginnings(self, prefix: KnownPrefix, name: str) -> None:
        """Files that know nothing that the new one doesn't."""
        for one in list(self._files()):
            n = len(one.ids)
            begins = n <= len(prefix.ids) and np.array_equal(prefix.ids[:n], one.ids)
            less = one.n_layers <= prefix.n_layers and one.depths <= set(prefix.states)
            if one.path.stem != name and begins and less:
                one.path.unlink(missing_ok=True)
                self.memory.held.pop(one.path.stem, None)


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


def _serves(layers: int, depths: Collection[int], n_layers: int, states: Collection[int]) -> bool:
    return layers >= n_layers and set(states) <= set(depths)


def _key(prefix: KnownPrefix) -> bytes:
    return f"{prefix.n_layers} {sorted(prefix.states)} ".encode() + prefix.ids.astype("<i4").tobytes()
