"""The JSON Schema (2020-12) of a report's JSON form, as data. Pure but for reading the package's own file."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def load_schema() -> dict[str, Any]:
    """The schema of `RunReport.to_dict()`, with the prompt that `agentctx pack` adds."""
    schema: dict[str, Any] = json.loads((files("agentctx.report") / "schema.json").read_text(encoding="utf-8"))
    return schema
