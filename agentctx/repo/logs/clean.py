"""Raw log bytes -> clean lines: encodings, escape sequences, carriage returns, control bytes, endless lines. Pure."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agentctx.repo.logs.prefixes import strip_prefixes

CHUNK = 1 << 20
MAX_LINE = 4_000  # characters of one line that are kept
MAX_RAW_LINE = 64 * 1024  # bytes of one line that are looked at
SAMPLE = 2_000  # bytes that tell UTF-16 without a byte order mark

_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|[\]_][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # titles, links, Buildkite
    r"|[()][0-9A-Za-z]|[@-Z\\-_=>78])"
)
_OVERWRITTEN = re.compile(r"^[^\n]*\r", re.MULTILINE)  # what a progress bar wrote before its last carriage return
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]+")
_CONTROL_BYTES = bytes([*range(9), *range(0x0B, 0x20), 0x7F])
_OTHER_ENDS = re.compile("[\x85\u2028\u2029]")  # what str.splitlines takes for the end of a line, and no tool does

_TEST_CASE = re.compile(rb"><(?=testcase|failure|error|/testcase|/?testsuite)")


@dataclass(slots=True)
class Cleaning:
    """What was read of one log and what had to be cut, for the notes."""

    n_bytes: int = 0
    blank: bool = True
    long_lines: int = 0
    control_bytes: int = 0
    report: bool = False  # an XML report of tests, whose text only looks like a log


def clean_batches(source: bytes | Iterable[bytes], cleaning: Cleaning) -> Iterator[str]:
    """Clean whole lines, joined by line feeds, read in bounded memory.

    Args:
        source: The log, or its parts in order, of any size but best of about a megabyte.
        cleaning: Filled with what was read and cut (mutated).
    """
    for piece in _whole_lines(_broken_up(_as_utf8(_counted(source, cleaning)), cleaning), cleaning):
        if len(piece.translate(None, _CONTROL_BYTES)) != len(piece):
            yield _cut_lines(_clean(_controlled(_decode(piece), cleaning)), cleaning)
        else:
            yield _cut_lines(_clean(_decode(piece)), cleaning)


def clean_lines(source: bytes | Iterable[bytes], cleaning: Cleaning) -> Iterator[str]:
    """The lines of `clean_batches` one by one."""
    for batch in clean_batches(source, cleaning):
        yield from batch.split("\n")


def _counted(source: bytes | Iterable[bytes], cleaning: Cleaning) -> Iterator[bytes]:
    parts = (source[at : at + CHUNK] for at in range(0, len(source), CHUNK)) if isinstance(source, bytes) else source
    for part in parts:
        cleaning.n_bytes += len(part)
        cleaning.blank = cleaning.blank and not part.strip()
        yield part


def _broken_up(parts: Iterator[bytes], cleaning: Cleaning) -> Iterator[bytes]:
    """Reports in XML may be one line: they get a line for each test."""
    first = next(parts, b"")
    is_report = first.lstrip()[:1] == b"<" and b"<testsuite" in first[:SAMPLE]
    cleaning.report = is_report
    yield _TEST_CASE.sub(rb">\n<", first) if is_report else first
    for part in parts:
        yield _TEST_CASE.sub(rb">\n<", part) if is_report else part


def _as_utf8(parts: Iterator[bytes]) -> Iterator[bytes]:
    """PowerShell redirects in UTF-16; everything else is taken as it is."""
    first = next(parts, b"")
    encoding = _utf16(first)
    if encoding is None:
        yield first.removeprefix(codecs.BOM_UTF8)
        yield from parts
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    yield decoder.decode(first).encode("utf-8", "replace")
    for part in parts:
        yield decoder.decode(part).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def _utf16(first: bytes) -> str | None:
    """By the byte order mark; without one where every second byte of mostly Latin text is zero."""
    if first[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    even, odd = first[0:SAMPLE:2], first[1:SAMPLE:2]
    if len(odd) >= 20 and odd.count(0) > 0.8 * len(odd) and even.count(0) < 0.2 * len(even):
        return "utf-16-le"
    if len(even) >= 20 and even.count(0) > 0.8 * len(even) and odd.count(0) < 0.2 * len(odd):
        return "utf-16-be"
    return None


def _whole_lines(parts: Iterator[bytes], cleaning: Cleaning) -> Iterator[bytes]:
    """Pieces that end where a line ends, without the final line end. Of an endless line only both ends are held."""
    pending, head, tail = b"", b"", b""
    for part in parts:
        if head:
            cut = part.find(b"\n")
            tail = (tail + (part if cut < 0 else part[:cut]))[-MAX_RAW_LINE:]
            if cut < 0:
                continue
            yield _telling_end(head, tail)
            head, part = b"", part[cut + 1 :]
        pending += part
        cut = pending.rfind(b"\n")
        if cut >= 0:
            yield pending[:cut]
            pending = pending[cut + 1 :]
        if len(pending) > CHUNK:
            cleaning.long_lines += 1
            head, tail, pending = pending[:MAX_RAW_LINE], pending[-MAX_RAW_LINE:], b""
    if head or pending:
        yield _telling_end(head, tail) if head else pending


def _telling_end(head: bytes, tail: bytes) -> bytes:
    """The part of an endless line that may matter: after the last carriage return, else its begin."""
    redrawn = tail.rfind(b"\r", 0, len(tail) - 1)
    return tail[redrawn + 1 :] if redrawn >= 0 else head


def _decode(chunk: bytes) -> str:
    try:
        return chunk.decode()
    except UnicodeDecodeError:
        return "\n".join(map(_decode_line, chunk.split(b"\n")))


def _decode_line(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("latin-1")


def _controlled(text: str, cleaning: Cleaning) -> str:
    """Without what a terminal doesn't show."""
    if "\r" in text:
        text = re.sub(r"\r+\n", "\n", text.rstrip("\r"))
        text = _OVERWRITTEN.sub("", text)
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if _CONTROL.search(text):
        cleaning.control_bytes += sum(len(found) for found in _CONTROL.findall(text))
        text = _CONTROL.sub("", text)
    return text


def _clean(text: str) -> str:
    return strip_prefixes(text if text.isascii() else _OTHER_ENDS.sub("\u2026", text.replace("\ufeff", "")))


def _cut_lines(text: str, cleaning: Cleaning) -> str:
    lines = text.split("\n")
    if max(map(len, lines)) <= MAX_LINE:
        return text
    cleaning.long_lines += sum(len(line) > MAX_LINE for line in lines)
    return "\n".join(map(_cut_line, lines))


def _cut_line(line: str) -> str:
    return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]} [... {len(line) - MAX_LINE} more characters]"
