"""A worker process of `pool`: reads lists of paths on stdin, answers with one frame per file on stdout.

It ends when stdin does, so it never outlives the process that started it; Ctrl-C is that process's business.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from pathlib import Path

from agentctx.repo.cache import SyntaxCache
from agentctx.repo.examine import read_and_examine
from agentctx.repo.frames import HELLO, write_frame


def main(root: str, cache: str) -> None:
    """`cache`: the syntax cache's file, '' for none."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Syntax is made of tuples without cycles: looking for garbage often finds none.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever a library prints is no frame
    store = SyntaxCache(Path(cache)) if cache else None
    out.write(HELLO)
    out.flush()
    for line in sys.stdin.buffer:
        paths = json.loads(line)
        for path in paths:
            for found in read_and_examine(Path(root), [path], store):
                write_frame(out, found)
            out.flush()
