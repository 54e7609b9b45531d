"""The only place that imports mlx-lm, which lowers the limit of open files while it is imported."""

from __future__ import annotations

import resource

from agentctx.errors import EngineUnavailable

_before, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
try:
    from mlx_lm.utils import get_total_parameters, load_model
except ValueError as error:  # it asks for a limit of 4096
    raise EngineUnavailable(f"mlx-lm can't be imported: {error}", hint="raise the limit: ulimit -Hn 4096") from error
_soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
if _soft < _before:  # as much of it as mlx-lm left
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(_before, _hard), _hard))

__all__ = ["get_total_parameters", "load_model"]
