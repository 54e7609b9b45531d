"""Chunks of a streamed chat completion -> texts, times and counts. Takes what odd servers send."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from agentctx.prompt import Completion
from agentctx.spec.engines.sampling import stop_end
from agentctx.spec.engines.spoken import Spoken
from agentctx.spec.protocols import Hear, TextUsage

_THOUGHT = re.compile(r"\A\s*<think>.*?</think>\s*", re.DOTALL)
_THINKS, _THOUGHT_ENDS = "<think>", "</think>"
UNSAID = "the server didn't say why an answer ended: it counts as cut off"


@dataclass(slots=True)
class _Choice:
    text: str = ""
    finish: str | None = None
    n_chunks: int = 0
    stopped: bool = False
    spoken: Spoken | None = None

    @property
    def answer(self) -> str:
        """The text without what the model thought before it."""
        return _THOUGHT.sub("", self.text)

    @property
    def thinks(self) -> bool:
        """Whether what came so far is, or may be, the beginning of a thought."""
        begun = self.text.lstrip()
        return _THINKS.startswith(begun[: len(_THINKS)]) and _THOUGHT_ENDS not in begun

    def add(self, text: str, stop: tuple[str, ...]) -> None:
        """The stop string stays in the text, as with embedded engines; what comes after it doesn't."""
        if self.stopped:
            return
        self.text += text
        self.n_chunks += 1
        end = stop_end(self.text, stop)
        if end is not None:
            self.text, self.finish, self.stopped = self.text[:end], "stop", True
        if self.spoken is not None and not self.thinks:
            self.spoken.up_to(self.answer)


@dataclass(slots=True)
class Read:
    """One request's answer. Times are seconds of `time.perf_counter`."""

    started: float
    choices: dict[int, _Choice] = field(default_factory=dict)
    first: float | None = None
    last: float = 0.0
    usage: Any = None

    def completions(self) -> list[Completion]:
        done = [self.choices[index] for index in sorted(self.choices)]
        alone = self._count("completion_tokens") if len(done) == 1 else None
        seconds = self.last - self.started
        return [_completion(one, seconds, one.n_chunks if alone is None else alone) for one in done]

    def facts(self) -> TextUsage:
        if self.first is None:
            return TextUsage(prompt_tokens=self._count("prompt_tokens"), cached_tokens=self._cached())
        made, span = self._count("completion_tokens"), self.last - self.first
        return TextUsage(
            ttft=self.first - self.started,
            decode_tokens_per_second=made / span if made is not None and span > 0 and made > 1 else None,
            prompt_tokens=self._count("prompt_tokens"),
            cached_tokens=self._cached(),
        )

    def _count(self, name: str) -> int | None:
        return _whole(getattr(self.usage, name, None))

    def _cached(self) -> int | None:
        details = getattr(self.usage, "prompt_tokens_details", None)
        known = _whole(getattr(details, "cached_tokens", None))
        return _whole(getattr(self.usage, "cached_tokens", None)) if known is None else known  # oMLX has it there

    def notes(self) -> tuple[str, ...]:
        return (UNSAID,) if any(one.finish is None for one in self.choices.values()) else ()


def read(
    chunks: Iterable[Any], started: float, stop: tuple[str, ...], hear: Hear | None = None, first: int = 0
) -> Read:
    """Read until the stream ends or every choice met a stop string.

    Args:
        hear: see `protocols.Sampler`; what was thought before the answer isn't heard.
        first: the sample that the request's first choice is.

    Raises:
        ValueError: not one choice came.
    """
    out = Read(started)
    for chunk in chunks:
        out.usage = getattr(chunk, "usage", None) or out.usage
        for choice in getattr(chunk, "choices", None) or ():
            _take(choice, out, stop, hear, first)
        out.last = time.perf_counter()
        if out.choices and all(one.stopped for one in out.choices.values()):
            break
    if not out.choices:
        raise ValueError("no choices")
    for own in out.choices.values():
        if own.spoken is not None:
            own.spoken.end(own.answer)
    return out


def _take(choice: Any, out: Read, stop: tuple[str, ...], hear: Hear | None, first: int) -> None:
    index = choice.index or 0
    if index not in out.choices:
        out.choices[index] = _Choice(spoken=Spoken(hear, first + index) if hear is not None else None)
    own = out.choices[index]
    delta = choice.delta
    text = getattr(delta, "content", None)
    thought = getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None)
    if (text or thought) and out.first is None:
        out.first = time.perf_counter()
    if text:
        own.add(text, stop)
    if choice.finish_reason and not own.stopped:
        own.finish = choice.finish_reason


def _completion(one: _Choice, seconds: float, n_tokens: int) -> Completion:
    """Only an answer that ended by itself is whole: a filter cuts it as the token limit does."""
    finish = "stop" if one.finish in ("stop", "eos", "tool_calls", "function_call") else "length"
    return Completion(one.answer, (), finish, seconds, n_tokens)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
