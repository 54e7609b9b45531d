"""The V1 model runner: positions are changed in place around the forward, and put back after it.

In place, because captured graphs read this very buffer; put back, because drafters read it afterwards. The slots of the
key-value cache, attention metadata and sampling were computed before, from the contiguous positions that they need.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from agentctx.spec.engines.vllm_plugin import seams
from agentctx.spec.engines.vllm_plugin.contract import Int64, Spans
from agentctx.spec.engines.vllm_plugin.requests import spans_of
from agentctx.spec.engines.vllm_plugin.seams import Patch


def patches() -> tuple[Patch, ...]:
    return (seams.patch(seams.V1_FORWARD, _at_original_positions),)


def _at_original_positions(old: Any) -> Any:
    @functools.wraps(old)
    def _model_forward(self: Any, input_ids: Any = None, positions: Any = None, *args: Any, **kwargs: Any) -> Any:
        shifts = None if positions is None else batch_shifts(self)
        if shifts is None:
            return old(self, input_ids, positions, *args, **kwargs)
        used = positions[..., : len(shifts)]
        saved = used.clone()
        used += _on_device(shifts, positions)
        try:
            return old(self, input_ids, positions, *args, **kwargs)
        finally:
            used.copy_(saved)

    return _model_forward


def batch_shifts(runner: Any) -> Int64 | None:
    """int64 (tokens of the batch,): original position minus slot; None when every request is an ordinary one."""
    batch = runner.input_batch
    sparse = [(row, spans) for row, name in enumerate(batch.req_ids) if (spans := spans_of(runner.requests[name]))]
    if not sparse:
        return None
    edges = runner.query_start_loc.np
    out = np.zeros(int(edges[batch.num_reqs]), dtype=np.int64)
    for row, spans in sparse:
        first, end = int(edges[row]), int(edges[row + 1])
        out[first:end] = shifts(spans, int(batch.num_computed_tokens_cpu[row]), end - first)
    return out


def shifts(spans: Spans, computed: int, n: int) -> Int64:
    """int64 (n,): original position minus slot, for the n slots after `computed`.

    Behind the prompt the shift is constant, so it doesn't matter that with asynchronous scheduling and speculation
    `computed` may run ahead of what was accepted.
    """
    return spans.positions(computed, computed + n) - np.arange(computed, computed + n, dtype=np.int64)


def _on_device(values: Int64, like: Any) -> Any:
    import torch

    tensor = torch.from_numpy(values)
    if like.device.type == "cpu":
        return tensor
    return tensor.pin_memory().to(like.device, non_blocking=True)
