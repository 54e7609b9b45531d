"""A language server as an oracle: JSON-RPC over its standard streams, many questions at a time."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

from agentctx.bench.oracles.oracle import Answer, Place, Position
from agentctx.errors import UnavailableError

# All questions of a batch fit into a pipe's buffer: neither side waits for the other to read.
BATCH = 100
SECONDS = 600.0  # for one batch: the first one loads the project


@dataclass(frozen=True, slots=True)
class Server:
    """How to start and set up a server. `settings`: what it is told when it asks for a section."""

    name: str
    command: tuple[str, ...]
    language_id: str
    settings: Mapping[str, object]
    options: Mapping[str, object]  # initializationOptions


class LspOracle:
    """A running server; leave the `with` block to end it."""

    def __init__(self, server: Server, root: Path, *, seconds: float = SECONDS) -> None:
        self._server = server
        self._root = root.resolve()
        self._seconds = seconds
        self._paths: dict[str, str | None] = {}
        self._last_id = 0
        self.failures = 0  # questions that the server answered with an error
        try:
            self._process = subprocess.Popen(
                server.command,
                cwd=self._root,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise UnavailableError(f"can't start {server.command[0]}: {error.strerror}") from error

    @property
    def name(self) -> str:
        return self._server.name

    def __enter__(self) -> LspOracle:
        try:
            self._ask("initialize", [self._hello()])
            self._send({"method": "initialized", "params": {}})
        except UnavailableError:
            self._close()
            raise
        return self

    def _hello(self) -> Mapping[str, object]:
        uri = self._root.as_uri()
        return {
            "processId": None,
            "rootUri": uri,
            "workspaceFolders": [{"uri": uri, "name": self._root.name}],
            "initializationOptions": dict(self._server.options),
            "capabilities": {
                "workspace": {"configuration": True, "workspaceFolders": True},
                "textDocument": {"definition": {"linkSupport": False}},
            },
        }

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        self._process.kill()
        self._process.wait()
        with suppress(BrokenPipeError):  # what was not sent to a server that is gone
            self._stream(self._process.stdin).close()
        self._stream(self._process.stdout).close()

    def definitions(self, path: str, positions: Sequence[Position]) -> list[Answer]:
        file = self._root / path
        document = {"uri": file.as_uri(), "languageId": self._server.language_id, "version": 1}
        text = file.read_bytes().decode("utf-8", "replace")
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": {**document, "text": text}}})
        answers: list[Answer] = []
        for start in range(0, len(positions), BATCH):
            questions = [
                {
                    "textDocument": {"uri": document["uri"]},
                    "position": {"line": at.line, "character": at.column},
                }
                for at in positions[start : start + BATCH]
            ]
            answers += [self._answer(result) for result in self._ask("textDocument/definition", questions)]
        self._send({"method": "textDocument/didClose", "params": {"textDocument": {"uri": document["uri"]}}})
        return answers

    def _answer(self, result: Any) -> Answer:
        found = [result] if isinstance(result, dict) else result or []
        return tuple(sorted({self._place(item) for item in found}, key=lambda p: (p.path or "", p.line, p.column)))

    def _place(self, item: Mapping[str, Any]) -> Place:
        start = (item.get("targetSelectionRange") or item["range"])["start"]
        return Place(self._inside(item.get("targetUri") or item["uri"]), start["line"], start["character"])

    def _inside(self, uri: str) -> str | None:
        """The path in the repository, None outside of it."""
        if uri not in self._paths:
            path = Path(unquote(urlsplit(uri).path))
            self._paths[uri] = path.relative_to(self._root).as_posix() if path.is_relative_to(self._root) else None
        return self._paths[uri]

    # ------------------------------------------------------------ messages

    def _ask(self, method: str, questions: Sequence[Mapping[str, object]]) -> list[Any]:
        """One request per question, then their answers in order."""
        ids = range(self._last_id + 1, self._last_id + 1 + len(questions))
        self._last_id += len(questions)
        for number, params in zip(ids, questions, strict=True):
            self._send({"id": number, "method": method, "params": params})
        watchdog = Timer(self._seconds, self._process.kill)
        watchdog.start()
        try:
            answers: dict[int, Any] = {}
            while len(answers) < len(questions):
                self._take(self._receive(), answers)
        finally:
            watchdog.cancel()
        return [answers[number] for number in ids]

    def _take(self, message: Mapping[str, Any], answers: dict[int, Any]) -> None:
        """Mutates `answers`. What the server itself asks is answered here."""
        if "method" not in message:
            # One question that the server stumbles over is one that it can't answer.
            self.failures += "error" in message
            answers[message["id"]] = message.get("result")
        elif "id" in message:
            items = (message.get("params") or {}).get("items", ())
            wanted = message["method"] == "workspace/configuration"
            result = [self._server.settings.get(item.get("section", "")) for item in items] if wanted else None
            self._send({"id": message["id"], "result": result})

    def _send(self, message: Mapping[str, object]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        try:
            stream = self._stream(self._process.stdin)
            stream.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            stream.flush()
        except OSError as error:
            raise self._ended() from error

    def _receive(self) -> Mapping[str, Any]:
        stream = self._stream(self._process.stdout)
        length = 0
        while line := stream.readline():
            key, _, value = line.decode("ascii", "replace").partition(":")
            if key.lower() == "content-length":
                length = int(value)
            elif not line.strip():
                message: Mapping[str, Any] = json.loads(stream.read(length))
                return message
        raise self._ended()

    def _stream(self, stream: Any) -> BinaryIO:
        assert stream is not None
        made: BinaryIO = stream
        return made

    def _ended(self) -> UnavailableError:
        hint = f"run it by hand: {' '.join(self._server.command)}"
        return UnavailableError(f"{self.name} ended, or gave no answer in {self._seconds:g} s", hint=hint)
