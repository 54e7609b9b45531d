"""tsserver's own protocol over its standard streams (`protocol.d.ts` of the npm package).

One JSON object a line goes in; messages with a `Content-Length` come out.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import Any, BinaryIO

from agentctx.errors import UnavailableError


class Connection:
    """A running server. `failures`: questions that it answered with an error."""

    def __init__(self, name: str, command: Sequence[str], folder: Path, seconds: float) -> None:
        self._name = name
        self._command = command
        self._seconds = seconds
        self._last = 0
        self.failures = 0
        try:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise UnavailableError(f"can't start {command[0]}: {error.strerror}") from error

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        with suppress(BrokenPipeError):  # what was not sent to a server that is gone
            _stream(self._process.stdin).close()
        _stream(self._process.stdout).close()

    def ask(self, command: str, questions: Sequence[Mapping[str, object]]) -> list[Any]:
        """The bodies of the answers, in the order of the questions."""
        asked = [self.send(command, arguments) for arguments in questions]
        watchdog = Timer(self._seconds, self._process.kill)
        watchdog.start()
        answers: dict[int, Any] = {}
        try:
            while len(answers) < len(asked):
                message = self._receive()
                if message.get("type") == "response" and message["request_seq"] in asked:
                    # One question that the server stumbles over is one that it can't answer.
                    self.failures += not message["success"]
                    answers[message["request_seq"]] = message.get("body")
        finally:
            watchdog.cancel()
        return [answers[number] for number in asked]

    def send(self, command: str, arguments: Mapping[str, object]) -> int:
        self._last += 1
        message = {"seq": self._last, "type": "request", "command": command, "arguments": arguments}
        try:
            stream = _stream(self._process.stdin)
            stream.write(json.dumps(message).encode() + b"\n")
            stream.flush()
        except OSError as error:
            raise self._ended() from error
        return self._last

    def _receive(self) -> Mapping[str, Any]:
        stream = _stream(self._process.stdout)
        length = 0
        while line := stream.readline():
            key, _, value = line.decode("ascii", "replace").partition(":")
            if key.lower() == "content-length":
                length = int(value)
            elif not line.strip() and length:
                message: Mapping[str, Any] = json.loads(stream.read(length))
                return message
        raise self._ended()

    def _ended(self) -> UnavailableError:
        hint = f"run it by hand: {' '.join(self._command)}"
        return UnavailableError(f"{self._name} ended, or gave no answer in {self._seconds:g} s", hint=hint)


def _stream(stream: Any) -> BinaryIO:
    assert stream is not None
    made: BinaryIO = stream
    return made
