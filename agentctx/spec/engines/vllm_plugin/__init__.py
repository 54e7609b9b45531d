"""What loads inside vLLM (entry point `vllm.general_plugins`): sparse prefill with the stock scheduler.

vLLM calls `register` in every process: API server, engine core, workers. Either all patches are applied or none: in a
version that was not tried, or where a seam has changed, requests with spans are refused and nothing else is touched.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass

from agentctx.spec.engines.vllm_plugin.contract import OFF
from agentctx.spec.engines.vllm_plugin.seams import Patch

TRY = "AGENTCTX_VLLM_TRY"  # a version of vLLM that was not tried, which the operator wants to use all the same

log = logging.getLogger("vllm.agentctx")


@dataclass(frozen=True, slots=True)
class State:
    """Of the plugin in this process. `reason` says why it isn't active."""

    active: bool
    reason: str
    patches: tuple[Patch, ...] = ()


_UNREGISTERED = State(False, "")
_state = _UNREGISTERED


def state() -> State:
    return _state


def register() -> None:
    """The entry point. Does nothing the second time."""
    global _state
    if _state is not _UNREGISTERED:
        return
    reason = _unfit()
    _state = _activate() if reason is None else _refuse(reason)


def _unfit() -> str | None:
    import vllm

    from agentctx.spec.engines.vllm_plugin import seams

    version = vllm.__version__.split("+")[0]
    if version not in seams.TRIED and os.environ.get(TRY) != version:
        return f"vLLM {version} was not tried, {', '.join(seams.TRIED)} was; set {TRY}={version} to use it all the same"
    return seams.changed(seams.ALL) or seams.missing_fields()


def _activate() -> State:
    from agentctx.spec.engines.vllm_plugin import frontend, hashing, runner_v1, runner_v2, workers

    # All are made before the first is applied: making can fail, applying can't.
    modules = (frontend, hashing, runner_v1, runner_v2, workers)
    patches = tuple(patch for module in modules for patch in module.patches())
    for patch in patches:
        patch.apply()
    return State(True, "", patches)


def _refuse(reason: str) -> State:
    from agentctx.spec.engines.vllm_plugin import frontend, seams

    log.error("%s: %s", OFF, reason)
    lost = seams.changed((seams.PROCESS_INPUTS, seams.BEAM_COMPLETION, seams.BEAM_CHAT))
    if lost is not None:
        log.error("%s, and requests with spans can't even be refused: %s", OFF, lost)
        return State(False, reason)
    patches = frontend.refusals(reason)
    for patch in patches:
        patch.apply()
    return State(False, reason, patches)
