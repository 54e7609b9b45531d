"""Programs that npm installs: where one is, and in which version."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from agentctx.errors import UnavailableError


def program_of(name: str, folder: Path | None, package: str) -> Path:
    """The program where npm installed its `package` in `folder`, or (None) on PATH.

    Raises:
        UnavailableError: it is not there.
    """
    found = shutil.which(name, path=str(folder / "node_modules" / ".bin")) if folder else shutil.which(name)
    if found is None:
        where = f"in {folder}" if folder else "on PATH"
        raise UnavailableError(f"there is no {name} {where}", hint=f"npm install --prefix DIR {package}; --server DIR")
    return Path(found)


def version_of(program: Path) -> str:
    """The version in the manifest of the package that the program belongs to: beside it, or a folder above."""
    place = program.resolve().parent
    for folder in (place, place.parent):
        try:
            return str(json.loads((folder / "package.json").read_text("utf-8"))["version"])
        except (OSError, ValueError, KeyError):
            continue
    return "of unknown version"
