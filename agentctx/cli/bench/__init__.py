"""`agentctx bench`: measurements and training. One module here per command; what they do is in `agentctx.bench`."""

from __future__ import annotations

import click

from agentctx.cli.lazy import LazyGroup

COMMANDS: dict[str, tuple[str, str]] = {
    "calibrate": ("agentctx.cli.bench.calibrate:calibrate", "Learn which of a drafter's heads find the code to edit."),
    "decode": ("agentctx.cli.bench.decode:decode", "Whether a model writes slower after a sparse prefill."),
    "fidelity": (
        "agentctx.cli.bench.fidelity:fidelity",
        "How well a model still expects real fixes when it reads a part of the prompt.",
    ),
    "fuzz": ("agentctx.cli.bench.fuzz:fuzz", "Whether broken files and logs are read without a fault."),
    "index": ("agentctx.cli.bench.index:index", "How fast the index is: cold, warm, one file saved."),
    "omissions": (
        "agentctx.cli.bench.omissions:omissions",
        "Whether a type checker misses names that no report holds.",
    ),
    "qps": ("agentctx.cli.bench.qps:qps", "The highest request rate that a vLLM server holds, sparse and dense."),
    "replay": ("agentctx.cli.bench.replay:replay", "How many lines of real fixes a selection keeps."),
    "resolve": ("agentctx.cli.bench.resolve:resolve", "How often references are resolved as a type checker does."),
    "train-rank": ("agentctx.cli.bench.train_rank:train_rank", "Learn a ranking from bug fixes in histories."),
    "ttft": ("agentctx.cli.bench.ttft:ttft", "Time to the first token with selection, as a share of dense prefill."),
    "whole": ("agentctx.cli.bench.whole:whole", "Whether what a selection keeps is whole and parses."),
}


class BenchGroup(LazyGroup):
    table = COMMANDS


@click.group(cls=BenchGroup, short_help="Measure, and train what is learned.")
def bench() -> None:
    """Measure on this machine, and train what is learned. Speed is given as a ratio within one run."""
