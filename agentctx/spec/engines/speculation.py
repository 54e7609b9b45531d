"""Speculative decoding beside sparse prefill: what is allowed with which engine, and why. Pure data.

Whatever proposes tokens, the main model checks them at its own positions. So a feature is safe that reads tokens only
or runs a model of its own; one whose head is a part of the main model's forward shares its positions, and has to be
tried before it is allowed.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentctx.errors import EngineUnavailable

HERE = frozenset({"reference", "torch", "openvino", "mlx"})  # they decode token by token: there is nothing to switch on


@dataclass(frozen=True, slots=True)
class Feature:
    """`methods`: what vLLM's `speculative_config.method` calls it; `sparse`: whether it may run on gapped positions."""

    name: str
    methods: tuple[str, ...]
    sparse: bool
    reason: str


_UNTRIED = "it was not tried on positions with gaps"
FEATURES: tuple[Feature, ...] = (
    Feature("n-gram", ("ngram",), True, "it reads tokens only"),
    Feature("draft model", ("draft_model",), True, "the draft model reads the kept tokens as a text of its own"),
    Feature("native MTP", ("mtp",), False, _UNTRIED),
    Feature("Gemma assistant, Lightning", (), False, _UNTRIED),
    Feature("MTP of vision models", (), False, "its positions have three axes"),
    Feature("DFlash", ("dflash",), False, "it drafts whole blocks at positions that it counts by itself"),
    Feature("EAGLE, Medusa", ("eagle", "eagle3", "medusa"), False, _UNTRIED),
)
SPARSE_METHODS = frozenset(method for feature in FEATURES if feature.sparse for method in feature.methods)


def refusal(method: str | None) -> str | None:
    """Why an engine that speculates by `method` takes no sparse prompts; None when it does."""
    if method is None or method in SPARSE_METHODS:
        return None
    known = next((one for one in FEATURES if method in one.methods), None)
    name, reason = (known.name, known.reason) if known else (repr(method), _UNTRIED)
    return f"speculative decoding by {name}: {reason}"


def verdict(feature: Feature, engine: str) -> str:
    """One cell of the table in docs/engines/speculation.md. Raises EngineUnavailable for an unknown engine."""
    if engine in HERE:
        return "not offered"
    if engine == "openai":
        return "allowed"  # text: the server's positions have no gaps
    if engine == "vllm":
        return "allowed" if feature.sparse else "refused"
    raise EngineUnavailable(f"there is no engine {engine!r}")
