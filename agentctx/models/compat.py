"""Can one model draft for another? Equal tokenizers: token by token. Else text by text, or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from agentctx.models.folder import ModelFolder
from agentctx.models.info import info


class Level(StrEnum):
    POSITION = "position"  # the drafter's token scores are the main model's token scores
    TEXT = "text"  # units can be scored, tokens can't
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Compatibility:
    """Pairs are (drafter, main model). `reasons` are sentences for the report."""

    level: Level
    reasons: tuple[str, ...]
    digests: tuple[str, str]
    vocab_sizes: tuple[int, int]
    contexts: tuple[int, int]


def compare(drafter: ModelFolder, main: ModelFolder, *, digests: Path | None = None) -> Compatibility:
    """Compare two whole folders without loading weights. Raises ModelUnavailable for a damaged one."""
    a, b = info(drafter, digests=digests), info(main, digests=digests)
    equal = a.tokenizer_digest == b.tokenizer_digest
    level = Level.POSITION if equal else Level.TEXT
    reasons = []
    if equal:
        reasons.append(f"one tokenizer ({a.tokenizer_digest[:12]})")
    else:
        reasons.append(
            f"the tokenizers differ: {a.name} has {a.tokenizer_digest[:12]}, {b.name} has {b.tokenizer_digest[:12]}; "
            f"positions can't be carried over, whole units can"
        )
    for one in (a, b):
        if not one.architecture.endswith(("ForCausalLM", "ForConditionalGeneration")):
            level = Level.NONE
            reasons.append(f"{one.name} is a {one.architecture}, which does not generate text")
    if a.max_position < b.max_position:
        reasons.append(
            f"{a.name} sees {a.max_position} tokens, {b.name} {b.max_position}: longer prompts go in windows"
        )
    if a.n_params > b.n_params:
        reasons.append(f"the drafter is the larger one ({a.n_params / 1e9:.2f}B against {b.n_params / 1e9:.2f}B)")
    return Compatibility(
        level,
        tuple(reasons),
        (a.tokenizer_digest, b.tokenizer_digest),
        (a.vocab_size, b.vocab_size),
        (a.max_position, b.max_position),
    )
