"""Raw log bytes -> clean lines: escape sequences, carriage returns, control bytes and CI prefixes removed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

CHUNK = 1 << 20
MAX_LINE = 4_000  # characters of one line that are kept
MAX_RAW_LINE = 64 * 1024  # bytes of one line that are looked at

_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|[\]_][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # titles, links, Buildkite
    r"|[()][0-9A-Za-z]|[@-Z\\-_=>78])"
)
_OVERWRITTEN = re.compile(r"^[^\n]*\r", re.MULTILINE)  # what a progress bar wrote before its last carriage return
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufeff]+")
_PREFIXES = (
    # `gh run view --log` ("job<TAB>step<TAB>"), then the time stamp of GitHub, Azure, GitLab or Jenkins
    re.compile(
        r"^(?:[^\t\n]+\t[^\t\n]+\t)?\[?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z\]? ?(?:\d\d[OE][ +])?", re.MULTILINE
    ),
    re.compile(
        r"^(?:##\[[a-z-]+\]|::(?:group|endgroup|warning|notice|debug|error)(?![^\n]*\bfile=)[^:\n]*::)", re.MULTILINE
    ),
    re.compile(r"^section_(?:start|end):\d+:[^\n]*$", re.MULTILINE),
    re.compile(r"^#\d+ \d+\.\d+ ", re.MULTILINE),  # BuildKit
)


@dataclass(slots=True)
class Cleaning:
    """What had to be cut from one log, for the notes."""

    long_lines: int = 0
    control_bytes: int = 0


def clean_batches(data: bytes, cleaning: Cleaning) -> Iterator[str]:
    """Clean whole lines, joined by line feeds, read in bounded memory. Counts what was cut in `cleaning` (mutated)."""
    for chunk in _chunks(_as_utf8(data), cleaning):
        yield _cut_lines(_clean(_decode(chunk), cleaning), cleaning)


def clean_lines(data: bytes, cleaning: Cleaning) -> Iterator[str]:
    """The lines of `clean_batches` one by one."""
    for batch in clean_batches(data, cleaning):
        yield from batch.split("\n")


def _cut_lines(text: str, cleaning: Cleaning) -> str:
    lines = text.split("\n")
    if max(map(len, lines)) <= MAX_LINE:
        return text
    cleaning.long_lines += sum(len(line) > MAX_LINE for line in lines)
    return "\n".join(map(_cut_line, lines))


def _cut_line(line: str) -> str:
    return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]} [... {len(line) - MAX_LINE} more characters]"


def _as_utf8(data: bytes) -> bytes:
    """PowerShell redirects in UTF-16; everything else is taken as it is."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data.removeprefix(b"\xef\xbb\xbf")


def _chunks(data: bytes, cleaning: Cleaning) -> Iterator[bytes]:
    """Pieces that end where a line ends, without the final line end. Endless lines are cut."""
    at = 0
    while at < len(data):
        end = data.rfind(b"\n", at, at + CHUNK)
        if end < 0 and at + CHUNK < len(data):
            end = data.find(b"\n", at + CHUNK)
            end = len(data) if end < 0 else end
            cleaning.long_lines += 1
            yield _cut_endless(data, at, end)
        else:
            # A piece that reaches the end of the data takes an unfinished last line along.
            end = len(data) if at + CHUNK >= len(data) else end
            yield data[at:end].removesuffix(b"\n")
        at = end + 1


def _cut_endless(data: bytes, start: int, end: int) -> bytes:
    """The part of an endless line that may matter: after the last carriage return, else its begin."""
    redrawn = data.rfind(b"\r", end - MAX_RAW_LINE, end - 1)
    return data[redrawn + 1 : end] if redrawn >= start else data[start : start + MAX_RAW_LINE]


def _decode(chunk: bytes) -> str:
    try:
        return chunk.decode()
    except UnicodeDecodeError:
        return "\n".join(map(_decode_line, chunk.split(b"\n")))


def _decode_line(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("latin-1").replace("\x85", "…")


def _clean(text: str, cleaning: Cleaning) -> str:
    if "\r" in text:
        text = re.sub(r"\r+\n", "\n", text.rstrip("\r"))
        text = _OVERWRITTEN.sub("", text)
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if _CONTROL.search(text):
        cleaning.control_bytes += sum(len(found) for found in _CONTROL.findall(text))
        text = _CONTROL.sub("", text)
    for prefix in _PREFIXES:
        text = prefix.sub("", text)
    return text
