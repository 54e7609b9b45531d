"""The engine core: blocks of the prefix cache are told apart by the positions of their tokens.

Without it a dense request whose ids collide with a sparse one is given the other's keys and values, and answers with
wrong tokens; nothing fails.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from agentctx.spec.engines.vllm_plugin import seams
from agentctx.spec.engines.vllm_plugin.requests import spans_of
from agentctx.spec.engines.vllm_plugin.seams import Patch


def patches() -> tuple[Patch, ...]:
    """The function itself, and every loaded module that imported it by name."""
    own = seams.patch(seams.BLOCK_KEYS, _with_positions)
    others = (
        Patch(module, own.name, own.old, own.new)
        for name, module in sorted(sys.modules.copy().items())  # other threads import meanwhile
        if name.startswith("vllm.") and module is not own.owner and module.__dict__.get(own.name) is own.old
    )
    return (own, *others)


def _with_positions(old: Any) -> Any:
    @functools.wraps(old)
    def generate_block_hash_extra_keys(
        request: Any, start_token_idx: int, end_token_idx: int, start_mm_idx: int
    ) -> tuple[tuple[Any, ...] | None, int]:
        keys, next_mm_idx = old(request, start_token_idx, end_token_idx, start_mm_idx)
        spans = spans_of(request)
        key = None if spans is None else spans.block_key(start_token_idx, end_token_idx)
        return (keys if key is None else (*(keys or ()), key)), next_mm_idx

    return generate_block_hash_extra_keys
