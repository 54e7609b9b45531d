"""Array types, and arrays that can't be changed. Pure."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]
Float32 = npt.NDArray[np.float32]
A = TypeVar("A", bound=npt.NDArray[np.generic])


def readonly(array: A) -> A:
    """The array itself, made read-only."""
    array.setflags(write=False)
    return array
