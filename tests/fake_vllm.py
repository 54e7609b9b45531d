"""A vLLM server in the test's own process, as far as `bench qps` sees one: it answers, is silent, refuses or breaks off
as it is told to, and counts the clients that left."""

from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from agentctx.spec.engines.vllm_plugin.contract import ACTIVE, SPANS
from tests.local_server import JsonHandler, serving

ANSWER, HANG, HANG_LATER, CLOSE, BREAK, EVENT, NONSENSE = (
    "answer", "hang", "hang after the first token", "close", "break off", "error event", "nonsense",
)  # fmt: skip


@dataclass
class FakeVllm:
    """`behave`: what is done about a completion that is streamed, one of the above or an HTTP status. `plugin`: whether
    malformed spans are refused. `n_cached`: what the server tells of its prefix cache."""

    behave: Callable[[dict[str, Any]], str | int] = lambda body: ANSWER
    plugin: bool = True
    n_cached: int | None = None
    port: int = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)  # of streamed completions
    n_open: int = 0  # connections that are waiting now
    n_left: int = 0  # clients that left before their answer
    changed: threading.Condition = field(default_factory=threading.Condition)
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def wait_for(self, what: Callable[[FakeVllm], bool]) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: what(self), timeout=60)

    def change(self, **by: int) -> None:
        with self.changed:
            for name, more in by.items():
                setattr(self, name, getattr(self, name) + more)
            self.changed.notify_all()


def is_sparse(body: dict[str, Any]) -> bool:
    return bool(body["vllm_xargs"])


def serve_vllm(server: FakeVllm) -> Iterator[FakeVllm]:
    class Handler(JsonHandler):
        def do_GET(self) -> None:
            self.answer(200, {"object": "list", "data": [{"id": "tiny", "object": "model"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            spans = body["vllm_xargs"].get(SPANS)
            if spans == [1, 1] and server.plugin:
                self.answer(400, {"error": {"message": f"{ACTIVE}: a span is empty", "code": 400}})
            elif not body.get("stream"):
                choice = {"index": 0, "text": "", "token_ids": [1], "finish_reason": "length"}
                self.answer(200, {"id": "x", "object": "text_completion", "created": 0, "choices": [choice]})
            else:
                with server.changed:
                    server.bodies.append(body)
                    server.changed.notify_all()
                self._streamed(server.behave(body), body)

        def _streamed(self, how: str | int, body: dict[str, Any]) -> None:
            if isinstance(how, int):
                self.answer(how, {"error": {"message": f"no, {how}", "code": how}})
                return
            if how == HANG:
                self._hang()
                return
            if how == CLOSE:
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            if how == NONSENSE:
                self.wfile.write(b"data: {nonsense\n\n")
                return
            if how == EVENT:
                self.wfile.write(b'data: {"error": {"message": "out of blocks", "code": 500}}\n\n')
                return
            self._chunk(choices=[{"index": 0, "text": "a", "finish_reason": None}])
            if how == HANG_LATER:
                self._hang()
                return
            if how == BREAK:
                return
            self._chunk(choices=[{"index": 0, "text": "b", "finish_reason": "length"}])
            usage: dict[str, Any] = {"prompt_tokens": len(body["prompt"]), "completion_tokens": 2, "total_tokens": 2}
            if server.n_cached is not None:
                usage["prompt_tokens_details"] = {"cached_tokens": server.n_cached}
            self._chunk(choices=[], usage=usage)
            self.wfile.write(b"data: [DONE]\n\n")

        def _hang(self) -> None:
            """Until the client leaves, as vLLM notices it: by the end of the connection."""
            server.change(n_open=1)
            while not server.closing.is_set():
                ready, _, _ = select.select([self.connection], [], [], 0.02)
                if ready and self.connection.recv(1, socket.MSG_PEEK) == b"":
                    server.change(n_open=-1, n_left=1)
                    return

        def _chunk(self, **parts: Any) -> None:
            chunk = {"id": "x", "object": "text_completion", "created": 0, "model": "tiny", **parts}
            self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
            self.wfile.flush()

    with serving(Handler, server.closing.set) as server.port:
        yield server
