"""Can one model draft for another? Equal tokenizers: token by token. Else text by text, or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from agentctx.models.counting import tokenizer_of
from agentctx.models.folder import ModelFolder, read_json
from agentctx.models.info import chat_of, info
from agentctx.models.probing import probe
from agentctx.models.tokenizer_digest import digests_of
from agentctx.prompt import ChatFrame, ModelInfo
from agentctx.rotary import rope_base, rope_of, rope_type


class Level(StrEnum):
    POSITION = "position"  # the drafter's token scores are the main model's token scores
    TEXT = "text"  # units can be scored, tokens can't
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Compatibility:
    """Pairs are (drafter, main model). `reasons` are sentences for the report. `probes`: texts that were encoded by
    both, `differ`: kinds of those that came out differently."""

    level: Level
    reasons: tuple[str, ...]
    digests: tuple[str, str]
    vocab_sizes: tuple[int, int]
    contexts: tuple[int, int]
    probes: int
    differ: tuple[str, ...]


def compare(drafter: ModelFolder, main: ModelFolder, *, cache: Path | None = None) -> Compatibility:
    """Compare two whole folders without loading weights. Raises ModelUnavailable for a damaged one.

    Args:
        cache: the user's cache, which remembers digests.
    """
    digests = digests_of(cache)
    a, b = info(drafter, digests=digests), info(main, digests=digests)
    frames = chat_of(drafter)[0], chat_of(main)[0]
    tokenizers = tokenizer_of(drafter, cache=cache), tokenizer_of(main, cache=cache)
    found = probe(*tokenizers, tuple(_text(frame) for frame in frames))
    equal = a.tokenizer_digest == b.tokenizer_digest
    reasons = [_tokens(a, b, found.n_probes, found.differ)]
    level = Level.POSITION if equal and not found.differ else Level.TEXT
    for one in (a, b):
        if not one.architecture.endswith(("ForCausalLM", "ForConditionalGeneration")):
            level = Level.NONE
            reasons.append(f"{one.name} is a {one.architecture}, which does not generate text")
    reasons += _about(a, b, frames)
    reasons += [
        f"{one.name}: {_positions(read_json(folder.path / 'config.json'))}" for one, folder in ((a, drafter), (b, main))
    ]
    return Compatibility(
        level,
        tuple(reasons),
        (a.tokenizer_digest, b.tokenizer_digest),
        (a.vocab_size, b.vocab_size),
        (a.max_position, b.max_position),
        found.n_probes,
        found.differ,
    )


def _tokens(a: ModelInfo, b: ModelInfo, n_probes: int, differ: tuple[str, ...]) -> str:
    """What digests and probes say together."""
    seen = f"of {n_probes} probes all agree" if not differ else f"probes differ in {', '.join(differ)}"
    pair = f"{a.name} has {a.tokenizer_digest[:12]}, {b.name} has {b.tokenizer_digest[:12]}"
    if a.tokenizer_digest != b.tokenizer_digest:
        return f"the tokenizers differ: {pair} ({seen}); positions can't be carried over, whole units can"
    if differ:
        return (
            f"the tokenizers' digests are equal ({a.tokenizer_digest[:12]}) and yet {seen}: one of the files is damaged"
        )
    return f"one tokenizer ({a.tokenizer_digest[:12]}; {seen})"


def _about(a: ModelInfo, b: ModelInfo, frames: tuple[ChatFrame, ChatFrame]) -> Iterator[str]:
    if frames[0] != frames[1]:
        yield "their chat templates differ: the drafter reads the main model's prompt, with its chat markers"
    if a.max_position < b.max_position:
        yield f"{a.name} sees {a.max_position} tokens, {b.name} {b.max_position}: longer prompts go in windows"
    if a.n_params > b.n_params:
        yield f"the drafter is the larger one ({a.n_params / 1e9:.2f}B against {b.n_params / 1e9:.2f}B)"


def _text(frame: ChatFrame) -> str:
    """The template around one word each."""
    if frame == ChatFrame():
        return ""
    return f"{frame.before_system}system{frame.before_user}user{frame.after_user}"


def _positions(config: Mapping[str, Any]) -> str:
    """What config.json says of positions: the rotary embedding, the context, a window."""
    config = config.get("text_config") or config
    base = rope_base(config)
    if base is None and not rope_of(config):
        named = "names no rotary base"
    else:
        named = f"rotary positions ({rope_type(config)}{'' if base is None else f', base {base:g}'})"
    window = config.get("sliding_window")
    slides = f", attention slides over {window} tokens" if window and config.get("use_sliding_window", True) else ""
    return f"{named}, context {config.get('max_position_embeddings')}{slides}"
