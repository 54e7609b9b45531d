"""The language table: a language is one row (`language_rows`), one query file in `queries/`, one resolver module.

`parse` reads Python by modules of its own and all other languages by the captures of their queries; docs/languages.md
says what each capture means.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import PurePosixPath
from types import MappingProxyType

from tree_sitter import Language as Grammar
from tree_sitter import Query

from agentctx.repo.language_rows import ROWS, TEST_DIRS, Comment, Language

LANGUAGES: Mapping[str, Language] = MappingProxyType({row.name: row for row in ROWS})

_HASH: Comment = ("#", "")
_SLASHES: Comment = ("//", "")
_MARKUP: Comment = ("<!--", "-->")
_SEMICOLON: Comment = (";", "")

# Text without a grammar. The key is the last extension in lower case.
PLAIN_EXTENSIONS: Mapping[str, Comment] = MappingProxyType(
    {
        **dict.fromkeys(("toml", "yaml", "yml", "cfg", "conf", "txt", "in", "mk"), _HASH),
        **dict.fromkeys(("properties", "cmake", "tf", "nix", "r", "pl", "graphql", "dockerfile"), _HASH),
        **dict.fromkeys(("md", "markdown", "html", "xml", "vue"), _MARKUP),
        **dict.fromkeys(("json", "json5", "jsonc", "gradle", "groovy", "dart", "zig"), _SLASHES),
        **dict.fromkeys(("swift", "proto"), _SLASHES),
        **dict.fromkeys(("ini", "el", "lisp", "clj"), _SEMICOLON),
        **dict.fromkeys(("css", "scss", "less"), ("/*", "*/")),
        **dict.fromkeys(("sql", "lua", "hs"), ("--", "")),
        "rst": ("..", ""),
        "j2": ("{#", "#}"),
        "jinja": ("{#", "#}"),
    }
)
PLAIN_FILENAMES: Mapping[str, Comment] = MappingProxyType(
    {
        **dict.fromkeys(("Makefile", "Dockerfile", "Justfile", "justfile", "Procfile", "Pipfile"), _HASH),
        **dict.fromkeys(("README", "CHANGES", "CHANGELOG", "CONTRIBUTING", "NEWS", "HISTORY"), _HASH),
        **dict.fromkeys((".gitignore", ".gitattributes", ".dockerignore", ".editorconfig", ".flake8"), _HASH),
        **dict.fromkeys((".pre-commit-config.yaml", "go.mod"), _HASH),
    }
)


def extension(path: str) -> str:
    """The last extension in lower case, without its dot."""
    return PurePosixPath(path).suffix[1:].lower()


def language_of(path: str) -> str | None:
    """The key in LANGUAGES of the file at `path`, by its name; None for plain text."""
    name, suffix = PurePosixPath(path).name, extension(path)
    for row in LANGUAGES.values():
        if suffix in row.extensions or name in row.filenames:
            return row.name
    return None


# What C has not, at the start of a row or anywhere.
_CPP_ONLY = re.compile(
    rb"^\s*(?:namespace(?:\s+[\w:]+)?\s*\{|template\s*<|class\s+\w[\w\s:,<>]*\{|using\s+\w|(?:public|private|protected)\s*:)"
    rb"|\bstd::|\bconstexpr\b|\bnoexcept\b|\boperator\s*(?:[=<>+*/!\[(-]|bool\b)|#\s*include\s*<(?:c?std\w+|string|vector|memory"
    rb"|map|set|utility|functional|iostream|algorithm|type_traits|atomic|mutex|thread|chrono|tuple|array|limits)>",
    re.MULTILINE,
)
_SHEBANG = re.compile(rb"#!\s*(?:\S*/)?([\w.+-]+)(?:[ \t]+(?:-S[ \t]+)?(?:\w+=\S*[ \t]+)*([\w.+-]+))?")


def language_in(path: str, language: str | None, data: bytes) -> str | None:
    """The language of a file whose name says `language`, by what is in it.

    Headers named `.h` are C++ where they hold what C has not. Scripts without an extension are told by their first
    line, if their comments start as those of text do (`comment_of` sees the name alone).
    """
    if language == "c" and extension(path) == "h":
        return "cpp" if _CPP_ONLY.search(data) else "c"
    if language is None and data.startswith(b"#!") and not PurePosixPath(path).suffix:
        found = _SHEBANG.match(data)
        program = (found[2] if found[2] and found[1].endswith(b"env") else found[1]) if found else b""
        name = program.decode("ascii", "replace").rstrip("0123456789.")
        rows = (row for row in LANGUAGES.values() if name in row.shebangs and row.comment == comment_of(path))
        return next((row.name for row in rows), None)
    return language


def is_plain(path: str) -> bool:
    """Whether the name says: text that is worth a place in a prompt."""
    return extension(path) in PLAIN_EXTENSIONS or PurePosixPath(path).name in PLAIN_FILENAMES


def comment_of(path: str) -> Comment:
    """What opens and closes a comment in the file at `path` ('#' where nothing is known)."""
    name = language_of(path)
    if name is not None:
        return LANGUAGES[name].comment
    base = PurePosixPath(path).name
    return PLAIN_FILENAMES.get(base) or PLAIN_EXTENSIONS.get(extension(path), _HASH)


def is_test_path(path: str) -> bool:
    """Whether the path says that the file holds tests or what only tests use."""
    name = language_of(path)
    pure = PurePosixPath(path)
    if name is None:
        return not TEST_DIRS.isdisjoint(pure.parts[:-1])
    row = LANGUAGES[name]
    return bool(row.test_file.fullmatch(pure.name)) or not row.test_dirs.isdisjoint(pure.parts[:-1])


@cache
def query_text(name: str) -> str:
    """The query files of the language `name`, one after the other."""
    folder = files("agentctx.repo") / "queries"
    return "\n".join((folder / file).read_text(encoding="utf-8") for file in LANGUAGES[name].query)


@cache
def query_digest(name: str) -> str:
    """SHA-256 of the query in hex: a changed query makes cached syntax stale."""
    return hashlib.sha256(query_text(name).encode()).hexdigest()


@cache
def grammar(name: str) -> Grammar:
    """The grammar of the language `name`, loaded once."""
    package, function = LANGUAGES[name].grammar
    return Grammar(getattr(import_module(package), function)())


@cache
def query(name: str) -> Query:
    """The compiled query of the language `name`."""
    return Query(grammar(name), query_text(name))
