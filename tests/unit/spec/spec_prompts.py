"""Prompts with one byte per token, from (section, length) pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agentctx.prompt import PromptDocument, PromptUnit, Section, TokenizedPrompt
from agentctx.source import UnitKind
from agentctx.spans import ByteSpan


def make_prompt(units: Sequence[tuple[Section, int]]) -> TokenizedPrompt:
    edges = np.cumsum([0, *[n for _, n in units]])
    total = int(edges[-1])
    text = bytes(i % 251 for i in range(total))
    document = PromptDocument(
        text,
        tuple(
            PromptUnit(i, section, UnitKind.TEXT, ByteSpan(int(edges[i]), int(edges[i + 1])))
            for i, (section, _) in enumerate(units)
        ),
    )
    ids = np.asarray([int(b) for b in text], np.int32)
    return TokenizedPrompt(document, ids, np.arange(total + 1, dtype=np.int32), edges.astype(np.int32), "bytes", "d")
