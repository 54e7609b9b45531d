"""The prompt as a server takes it: two messages of plain text. Pure data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Conversation:
    """A system and a user message. How the answer should begin is said in `user`.

    There is no beginning of the assistant's turn: of the servers some continue such a message, some answer it.
    """

    system: str
    user: str
