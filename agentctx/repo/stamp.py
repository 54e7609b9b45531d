"""A digest of everything that decides what indexing a file gives: what an older program stored is never used."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files

from agentctx import __version__
from agentctx.repo import languages

_NO_PARSING = ("logs", "ranking", "resolvers", "__pycache__")


@cache
def code_stamp() -> str:
    """Of this package's code that reads files. A changed rule, parser or codec changes it; nobody has to count up."""
    made = hashlib.sha256(__version__.encode())
    folders = [files("agentctx.repo")]
    for folder in folders:
        for item in sorted(folder.iterdir(), key=lambda one: one.name):
            if item.is_file() and item.name.endswith((".py", ".scm")):
                made.update(item.name.encode() + b"\0" + item.read_bytes())
            elif item.is_dir() and item.name not in _NO_PARSING:
                folders.append(item)
    return made.hexdigest()


@cache
def language_stamp(language: str | None) -> str:
    """Of the code and of what parses a language: its grammar and tree-sitter itself."""
    if language is None:
        return code_stamp()
    package = languages.LANGUAGES[language].grammar[0].replace("_", "-")
    return ":".join((code_stamp(), _version("tree-sitter"), _version(package)))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # vendored, or run from a source tree without metadata
        return "?"
