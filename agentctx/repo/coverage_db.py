"""coverage.py's database (`.coverage`) -> rows. IO; read only, and never waits for a writer."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from agentctx.repo.coverage import CoverageError, Row, bits


def read_database(file: Path) -> list[Row]:
    """Files with the lines that each context ran; what was not run is not in the database.

    Raises:
        CoverageError: it is no such database, or it is locked.
    """
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=0)) as base:
            lines = base.execute(
                "select path, context, numbits from line_bits join file on file_id = file.id"
                " join context on context_id = context.id"
            )
            found: dict[str, dict[str, set[int]]] = {}
            for path, context, blob in lines:
                found.setdefault(path, {}).setdefault(context, set()).update(bits(blob))
            arcs = base.execute(
                "select path, context, fromno, tono from arc join file on file_id = file.id"
                " join context on context_id = context.id"
            )
            for path, context, first, second in arcs:
                ends = {line for line in (first, second) if line > 0}
                found.setdefault(path, {}).setdefault(context, set()).update(ends)
    except (sqlite3.Error, TypeError) as error:
        raise CoverageError(f"it is not a database of coverage.py that can be read ({error})") from error
    return [Row(path, {name: sorted(ran[name]) for name in sorted(ran)}) for path, ran in sorted(found.items())]
