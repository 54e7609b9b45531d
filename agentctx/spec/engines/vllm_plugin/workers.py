"""The engine core asks its workers, once at start: does each have the plugin, and is it active there?

Workers may run on other machines. One that lacks the plugin would compute with contiguous positions, unseen.
"""

from __future__ import annotations

import functools
from typing import Any

from agentctx.spec.engines.vllm_plugin import seams
from agentctx.spec.engines.vllm_plugin.contract import VERSION
from agentctx.spec.engines.vllm_plugin.seams import Patch

SECONDS = 120.0


def patches() -> tuple[Patch, ...]:
    return (seams.patch(seams.ENGINE_CORE, _asking_workers),)


def report(worker: Any) -> str:
    """Runs in a worker: '' when the plugin is active there with our contract, else what is wrong."""
    from agentctx.spec.engines import vllm_plugin

    state = vllm_plugin.state()
    return "" if state.active else state.reason or f"the plugin (contract {VERSION}) was not registered"


def check(reports: list[str]) -> None:
    """Raises RuntimeError, which ends the start of the engine."""
    for rank, reason in enumerate(reports):
        if reason:
            raise RuntimeError(
                f"agentctx is active in the engine but not in worker {rank}: {reason}. Install the same agentctx and "
                f"vLLM on every node, or keep the plugin from loading with VLLM_PLUGINS."
            )


def _asking_workers(old: Any) -> Any:
    @functools.wraps(old)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        old(self, *args, **kwargs)
        check(self.collective_rpc(report, SECONDS))

    return __init__
