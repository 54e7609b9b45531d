"""Examples in files: one compressed file of arrays per repository."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agentctx.bench.ranking.mine import Example
from agentctx.errors import UsageError

_ARRAYS = ("features", "gold", "weight", "size", "nodes", "unit_of", "unit_features", "unit_gold", "unit_size")


def save(examples: Sequence[Example], names: Sequence[str], file: Path) -> None:
    """`names`: of the features. The file is there whole, or not at all."""
    arrays: dict[str, Any] = {"ids": np.array([one.id for one in examples]), "names": np.array(names)}
    for n, one in enumerate(examples):
        arrays.update({f"{n}.{name}": _narrow(getattr(one, name)) for name in _ARRAYS})
        arrays[f"{n}.facts"] = np.array([one.lost, one.evidence])
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f"{file.stem}.part.npz")
    np.savez_compressed(partial, **arrays)
    partial.replace(file)


def load(file: Path) -> tuple[tuple[str, ...], list[Example]]:
    """Names of the features, and the examples.

    Raises:
        UsageError: the file is no such file.
    """
    out = []
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as found:
            for n, id in enumerate(found["ids"].tolist()):
                arrays: dict[str, Any] = {name: _wide(found[f"{n}.{name}"]) for name in _ARRAYS}
                lost, evidence = found[f"{n}.facts"].tolist()
                out.append(Example(id=id, lost=int(lost), evidence=evidence, **arrays))
            return tuple(found["names"].tolist()), out
    except (OSError, KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise UsageError(f"{file} holds no examples: {error!r}", hint="remove it, and it is made again") from error


def _narrow(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return values.astype(np.float32 if values.dtype == np.float64 else np.int32)


def _wide(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """float32 -> float64 with the thousandths that were meant."""
    return np.round(values.astype(np.float64), 4) if values.dtype == np.float32 else values.astype(np.int64)
