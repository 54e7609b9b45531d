"""The spans of a request inside vLLM, read once."""

from __future__ import annotations

from typing import Any

from agentctx.spec.engines.vllm_plugin import contract
from agentctx.spec.engines.vllm_plugin.contract import Spans

_KEPT = "_agentctx_spans"


def spans_of(request: Any) -> Spans | None:
    """Spans of an object with `sampling_params`; kept on it, because it is asked for every block and every step."""
    try:
        found: Spans | None = request.__dict__[_KEPT]
    except KeyError:
        found = contract.parse(getattr(request.sampling_params, "extra_args", None))
        request.__dict__[_KEPT] = found
    return found
