"""Results on standard output, whatever the terminal's encoding and the names of files."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import click


def echo_json(data: Any) -> None:
    """One JSON document, always in UTF-8. Bytes of file names that are no text come out as `\\udcXX` escapes."""
    text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    stream = click.get_binary_stream("stdout")
    stream.write(text.encode("utf-8", "backslashreplace"))
    stream.flush()


def never_fail_on_a_character() -> None:
    """Text that the terminal's encoding doesn't know is written as escapes instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what was put in its place may be anything
            stream.reconfigure(errors="backslashreplace")
