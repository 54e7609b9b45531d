"""A sample's text, handed on piece by piece while it is written. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agentctx.spec.protocols import Hear

_UNFINISHED = "\ufffd"  # what a tokenizer decodes the first bytes of a character to


@dataclass(slots=True)
class Spoken:
    """`n`: characters that were handed on. All pieces together are the text."""

    hear: Hear
    sample: int
    n: int = 0

    def up_to(self, text: str) -> None:
        """More of the text is known. A character whose last bytes are still to come waits."""
        self._say(text, len(text.rstrip(_UNFINISHED)))

    def end(self, text: str) -> None:
        """All of it is known."""
        self._say(text, len(text))

    def _say(self, text: str, end: int) -> None:
        if end > self.n:
            self.hear(self.sample, text[self.n : end])
            self.n = end
