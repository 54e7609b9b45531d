"""Loaded at the start of every Python that a check runs; then runs the sitecustomize that it hides, if any.

This folder goes on PYTHONPATH of checks only. Runs on the user's Python, so it uses nothing newer than 3.7.
"""

import os
import sys


def _run_the_hidden_one() -> None:
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))
    others = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


try:
    import agentctx_origin  # type: ignore[import-not-found]

    agentctx_origin.install()
finally:
    _run_the_hidden_one()
