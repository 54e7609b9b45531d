"""Writing what was learned."""

from __future__ import annotations

from pathlib import Path

from agentctx.errors import UsageError


def write_text(text: str, out: Path) -> None:
    """Folders are made where they are missing.

    Raises:
        UsageError: the file can't be written.
    """
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"can't write {out}: {error.strerror}") from error
