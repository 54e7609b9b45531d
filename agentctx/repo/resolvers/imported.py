"""One name that an import statement brings in, as a language's module reads it."""

from __future__ import annotations

from dataclasses import dataclass

WHOLE = "export="  # in a file's export list: what stands for all of the module (`module.exports = x`)


@dataclass(frozen=True, slots=True)
class Imported:
    """`module` as written; `name` None for the whole module, '*' for everything in it.

    `alias` is '' for '*' and where no name is bound.
    `at`: the byte at which the name (for whole modules: the module) is written, where that is known.
    """

    module: str
    name: str | None
    alias: str
    exported: bool = False
    at: int | None = None
