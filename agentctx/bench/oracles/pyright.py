"""pyright's language server as the oracle of Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agentctx.bench.oracles.lsp import Server
from agentctx.bench.oracles.npm import program_of, version_of

PROGRAM = "pyright-langserver"


def pyright(folder: Path | None, python: Path | None) -> Server:
    """How to start pyright.

    Args:
        folder: where npm installed it; None: the program is on PATH.
        python: the interpreter whose packages it sees, None: none but typeshed's.

    Raises:
        UnavailableError: it is not there.
    """
    program = program_of(PROGRAM, folder, "pyright")
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
    name = f"pyright {version_of(program)}"
    return Server(name, (str(program), "--stdio"), "python", settings, {})
