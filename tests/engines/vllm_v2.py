"""For tests only: vLLM's V2 model runner on a CPU, by Triton's interpreter. Import it before vllm.

Set AGENTCTX_TEST_VLLM_V2=1 to run a suite with it (conftest).
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"
os.environ["VLLM_USE_V2_MODEL_RUNNER"] = "1"

import triton.backends


class Driver:
    @staticmethod
    def is_active() -> bool:
        return True


if "cpu" not in triton.backends.backends:
    backend = type(next(iter(triton.backends.backends.values())))
    triton.backends.backends["cpu"] = backend(compiler=None, driver=Driver)
