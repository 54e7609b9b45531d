"""A digest that tells one set of weights from another, made of a sample: reading all of them would take seconds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from agentctx.errors import ModelUnavailable

SAMPLES = 16  # of each file, evenly spread, the header at its beginning and the end included
SAMPLE_BYTES = 65_536


def weights_digest(files: Sequence[Path]) -> str:
    """SHA-256 (hex) over the size and SAMPLES parts of each weight file, in order. A fine-tune changes all of them.

    Raises:
        ModelUnavailable: a file can't be read.
    """
    found = hashlib.sha256()
    for file in files:
        try:
            with file.open("rb") as opened:
                size = opened.seek(0, 2)
                found.update(f"{size}\n".encode())
                for n in range(SAMPLES):
                    opened.seek(max(0, size - SAMPLE_BYTES) * n // (SAMPLES - 1))
                    found.update(opened.read(SAMPLE_BYTES))
        except OSError as error:
            raise ModelUnavailable(f"{file} can't be read: {error.strerror or error}") from error
    return found.hexdigest()
