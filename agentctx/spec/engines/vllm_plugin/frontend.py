"""The front end: what a sparse request must be before it gets into the engine. Everything else is HTTP 400.

A request that gets past here can't hurt the others: its positions are within the rotary table, its spans are as long as
its prompt.
"""

from __future__ import annotations

import functools
import logging
from typing import Any

from agentctx.spec.engines.vllm_plugin import contract, seams, setups
from agentctx.spec.engines.vllm_plugin.contract import ACTIVE, OFF, BadSpans, Spans
from agentctx.spec.engines.vllm_plugin.seams import Patch

log = logging.getLogger("vllm.agentctx")


def patches() -> tuple[Patch, ...]:
    return (
        seams.patch(seams.INPUT_PROCESSOR, _checking_setup),
        seams.patch(seams.PROCESS_INPUTS, _checking_requests),
        *(seams.patch(seam, _without_beams) for seam in (seams.BEAM_COMPLETION, seams.BEAM_CHAT)),
    )


def refusals(reason: str) -> tuple[Patch, ...]:
    """For a plugin that is off: requests with spans get an error, never a dense answer."""

    def make(old: Any) -> Any:
        @functools.wraps(old)
        def process_inputs(self: Any, *args: Any, **kwargs: Any) -> Any:
            if contract.has_spans(_extra(_params(args, kwargs))):
                raise _bad(f"{OFF}: {reason}")
            return old(self, *args, **kwargs)

        return process_inputs

    beams = (seams.patch(seam, _without_beams) for seam in (seams.BEAM_COMPLETION, seams.BEAM_CHAT))
    return (seams.patch(seams.PROCESS_INPUTS, make), *beams)


def _checking_setup(old: Any) -> Any:
    @functools.wraps(old)
    def __init__(self: Any, vllm_config: Any, *args: Any, **kwargs: Any) -> None:
        old(self, vllm_config, *args, **kwargs)
        self._agentctx_refused = setups.refused(vllm_config)
        if self._agentctx_refused is not None:
            log.error("%s: %s. Sparse requests will be refused.", OFF, self._agentctx_refused)

    return __init__


def _checking_requests(old: Any) -> Any:
    @functools.wraps(old)
    def process_inputs(self: Any, *args: Any, **kwargs: Any) -> Any:
        extra = _extra(_params(args, kwargs))
        if not contract.has_spans(extra):
            return old(self, *args, **kwargs)
        if self._agentctx_refused is not None:
            raise _bad(f"{OFF}: {self._agentctx_refused}")
        try:
            spans = contract.parse(extra)
            assert spans is not None
            request = old(self, *args, **kwargs)
            _check(spans, request, setups.position_limit(self.model_config))
        except BadSpans as error:
            raise _bad(f"{ACTIVE}: {error}") from error
        return request

    return process_inputs


def _check(spans: Spans, request: Any, limit: int) -> None:
    """Raises BadSpans: a request whose tokens aren't simply the prompt's ids."""
    if request.sampling_params is None:
        raise BadSpans("only generation takes spans, not pooling")
    if request.prompt_embeds is not None or request.prompt_token_ids is None:
        raise BadSpans("a prompt of embeddings takes no spans")
    if request.mm_features:
        raise BadSpans("only text takes spans, not images, audio or video")
    if request.resumable:
        raise BadSpans("a resumable session takes no spans")
    max_new = request.sampling_params.max_tokens or 0
    contract.check_request(spans, n_tokens=len(request.prompt_token_ids), max_new=max_new, limit=limit)


def _without_beams(old: Any) -> Any:
    """Beam search makes new requests without the extra arguments: they would be dense, and nobody would be told."""

    @functools.wraps(old)
    def to_beam_search_params(self: Any, *args: Any, **kwargs: Any) -> Any:
        if contract.has_spans(self.vllm_xargs):
            raise _bad(f"{ACTIVE}: beam search takes no spans")
        return old(self, *args, **kwargs)

    return to_beam_search_params


def _params(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`params`, the third parameter after self."""
    return kwargs["params"] if "params" in kwargs else args[2]


def _extra(params: Any) -> Any:
    """Extra arguments of sampling or pooling parameters."""
    return getattr(params, "extra_args", None) or getattr(params, "extra_kwargs", None)


def _bad(message: str) -> Exception:
    from vllm.exceptions import VLLMValidationError

    error: Exception = VLLMValidationError(message)
    return error
