"""Why a file is not indexed, from its name or from its first bytes. Pure; a rule returns a sentence or None."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath

from agentctx.repo.languages import extension, is_plain, language_of

MAX_BYTES = 2 * 1024 * 1024
BINARY_HEAD = 8 * 1024
LEAST_PAIRS = 8  # of bytes, to tell UTF-16 from a few NUL bytes
LONG_LINE = 2000  # bytes
DENSE_LINE = 300  # bytes, on average, of scripts and styles that nobody wrote so
HEADER_LINES = 20

_LOCKS = frozenset(
    [
        "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "deno.lock", "bun.lockb", "go.sum", "go.work.sum",
        "packages.lock.json", "project.assets.json", "Package.resolved", "gradle.lockfile", "conda-lock.yml",
    ]
)  # fmt: skip
_BUILT_NAMES = re.compile(
    r".*(_pb2(_grpc)?\.pyi?|\.pb(\.gw|\.validate)?\.go|_grpc\.pb\.go|\.pb\.(cc|h)|_pb\.(js|d\.ts)|\.pbobjc\.[hm]"
    r"|\.g\.(dart|cs)|\.g\.i\.cs|\.designer\.cs|\.freezed\.dart|\.generated\.\w+|_generated\.(go|rs)|\.snap\.\w+)",
    re.IGNORECASE,
)
_LEGAL = re.compile(r"(LICEN[CS]E|COPYING|NOTICE|PATENTS)([-._].*)?", re.IGNORECASE)
_DATA = frozenset(
    [
        "csv",
        "tsv",
        "svg",
        "po",
        "pot",
        "mo",
        "snap",
        "ambr",
        "ipynb",
        "jsonl",
        "ndjson",
        "geojson",
        "dump",
        "map",
        "pem",
        "crt",
        "key",
        "env",
        "patch",
        "diff",
        "log",
        "out",
        "plist",
        "srt",
        "vtt",
        "bib",
    ]
)
_MADE = re.compile(
    rb"@generated\b|\bDO NOT (EDIT|MODIFY)\b|<auto-?generated\b"
    rb"|\b([Aa]uto(matically)?[- ]?generated|[Gg]enerated automatically) (by|from|file|code|with|using)\b"
    rb"|\b(file|code) (is|was|has been) (auto-?|automatically )generated\b"
)
_SOURCE_MAP = re.compile(rb"(//|/\*)[#@] sourceMappingURL=\S+\s*(\*/)?\s*\Z")
_BUNDLED = frozenset({"js", "mjs", "cjs", "css"})
_CONTROL = bytes(sorted({*range(1, 9), *range(14, 27), *range(28, 32), 127}))  # ESC and the usual white space are text
_COMMENT = re.compile(rb"\s*(#|//|/\*|\*|--|<!--|;|\"\"\"|'''|\{#|\.\.)")
_LFS = b"version https://git-lfs.github.com/spec/"
_WIDE = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")


def by_name(path: str) -> str | None:
    """Why the file is left out whatever it holds."""
    name = PurePosixPath(path).name
    if name in _LOCKS or extension(path) == "lock":
        return "a lock file, written by a package manager"
    if _LEGAL.fullmatch(name):
        return "a legal text"
    if extension(path) in _DATA:
        return f"data, not code (.{extension(path)})"
    if name.endswith((".min.js", ".min.mjs", ".min.cjs", ".min.css", "-min.js")):
        return "minified"
    if _BUILT_NAMES.fullmatch(name):
        return "generated, by its name"
    if language_of(path) is None and not is_plain(path) and PurePosixPath(path).suffix:
        return f"no kind of text that is indexed (.{extension(path)})"
    return None


def by_size(n_bytes: int) -> str | None:
    """Why the file is left out unread."""
    if n_bytes > MAX_BYTES:
        return f"too large: {n_bytes / 1024 / 1024:.1f} MiB, the limit is {MAX_BYTES // 1024 // 1024} MiB"
    return None


def by_content(path: str, data: bytes) -> str | None:
    """Why the file is left out once it was read."""
    for rule in _CONTENT_RULES:
        reason = rule(path, data)
        if reason is not None:
            return reason
    return None


def _wide(path: str, data: bytes) -> str | None:
    return "UTF-16 or UTF-32 text: convert it to UTF-8 to have it indexed" if data.startswith(_WIDE) else None


def _binary(path: str, data: bytes) -> str | None:
    """Bytes are looked at, never characters: where the head ends within one, that says nothing."""
    head = data[:BINARY_HEAD]
    if b"\0" in head:
        return _markless_wide(head) or "binary: it holds NUL bytes"
    n_control = len(head) - len(head.translate(None, _CONTROL))
    return "binary: much of it are control characters" if n_control * 10 > len(head) else None


def _markless_wide(head: bytes) -> str | None:
    """UTF-16 without a mark: every other byte of mostly Latin text is NUL."""
    n_pairs = len(head) // 2
    for first in (0, 1):
        if n_pairs >= LEAST_PAIRS and head[first::2].count(0) * 10 > n_pairs * 7 and b"\0" not in head[1 - first :: 2]:
            return "UTF-16 text without a mark: convert it to UTF-8 to have it indexed"
    return None


def _lfs(path: str, data: bytes) -> str | None:
    return "a Git LFS pointer: run git lfs pull to have the file itself" if data.startswith(_LFS) else None


def _generated(path: str, data: bytes) -> str | None:
    """Only comments count: code that looks for such a header is no generated code."""
    for line in data[:BINARY_HEAD].split(b"\n")[:HEADER_LINES]:
        found = _MADE.search(line)
        if found is not None and _COMMENT.match(line):
            return f"generated: its header says {found[0].decode()}"
    return None


def _minified(path: str, data: bytes) -> str | None:
    lines = data.split(b"\n")
    n_long = sum(len(line) for line in lines if len(line) > LONG_LINE)
    if n_long * 2 > len(data):
        return f"minified or data: most of it is in lines of more than {LONG_LINE} bytes"
    if extension(path) in _BUNDLED and len(data) > BINARY_HEAD and len(data) > DENSE_LINE * len(lines):
        return f"minified: its lines have {len(data) // len(lines)} bytes on average"
    if extension(path) in _BUNDLED and _SOURCE_MAP.search(data[-1000:]):
        return "built from other files: it ends with the address of its source map"
    return None


def _unknown(path: str, data: bytes) -> str | None:
    """Files without an extension have to say by a `#!` line that they are text of some kind."""
    known = language_of(path) is not None or is_plain(path)
    return None if known or data.startswith(b"#!") else "no kind of text that is indexed"


_CONTENT_RULES: tuple[Callable[[str, bytes], str | None], ...] = (_lfs, _wide, _binary, _unknown, _generated, _minified)


def language_by_content(path: str, data: bytes) -> str | None:
    """The language by name, or by the `#!` line of a file without an extension."""
    name = language_of(path)
    if name is None and not PurePosixPath(path).suffix and data.startswith(b"#!"):
        first = data.split(b"\n", 1)[0]
        return "python" if re.search(rb"\bpython[0-9.]*\b", first) else None
    return name
