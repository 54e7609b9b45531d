"""pyright's language server as the oracle of Python."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from agentctx.bench.lsp_oracle import Server
from agentctx.errors import UnavailableError

PROGRAM = "pyright-langserver"


def pyright(folder: Path | None, python: Path | None) -> Server:
    """How to start pyright.

    Args:
        folder: where npm installed it; None: the program is on PATH.
        python: the interpreter whose packages it sees, None: none but typeshed's.

    Raises:
        UnavailableError: it is not there.
    """
    program = shutil.which(PROGRAM, path=str(folder / "node_modules" / ".bin")) if folder else shutil.which(PROGRAM)
    if program is None:
        where = f"in {folder}" if folder else "on PATH"
        raise UnavailableError(f"there is no {PROGRAM} {where}", hint="npm install --prefix DIR pyright; --server DIR")
    analysis = {
        "diagnosticMode": "openFilesOnly",
        "typeCheckingMode": "off",
        "autoSearchPaths": True,
        "useLibraryCodeForTypes": True,
        "logLevel": "Error",
    }
    settings: dict[str, Mapping[str, object]] = {
        "python": {"pythonPath": str(python) if python else None, "analysis": analysis},
        "python.analysis": analysis,
        "pyright": {"disableOrganizeImports": True},
    }
    name = f"pyright {_version(Path(program))}"
    return Server(name, (program, "--stdio"), "python", settings, {})


def _version(program: Path) -> str:
    manifest = program.resolve().parent / "package.json"
    try:
        return str(json.loads(manifest.read_text("utf-8"))["version"])
    except (OSError, ValueError, KeyError):
        return "of unknown version"
