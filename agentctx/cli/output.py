"""Results on standard output, whatever the terminal's encoding and the names of files."""

from __future__ import annotations

import json
import sys
from io import TextIOWrapper
from typing import Any


def echo_json(data: Any) -> None:
    """One JSON document, always in UTF-8. Bytes of file names that are no text come out as `\\udcXX` escapes."""
    text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()


def never_fail_on_a_character() -> None:
    """Text that the terminal's encoding doesn't know is written as escapes instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # what was put in its place may be anything
            stream.reconfigure(errors="backslashreplace")
