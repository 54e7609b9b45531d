"""An OpenAI-compatible server in the test's own process: it says what it is told to, in the ways of odd servers too."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.local_server import JsonHandler, serving

USAGE = {"prompt_tokens": 900, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 640}}


@dataclass(frozen=True)
class Reply:
    """`texts`: a choice each. `size`: bytes per write, which cuts frames and characters. `breaks`: the connection ends
    before the answer does. `raw`: bytes to send instead of frames."""

    texts: Sequence[str | None] = ("",)
    status: int = 200
    error: Any = None
    finish: str | None = "stop"
    usage: dict[str, Any] | None = field(default_factory=lambda: USAGE)
    size: int = 1 << 20
    delay: float = 0.0
    gap: float = 0.0
    breaks: bool = False
    raw: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Asked:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class FakeServer:
    """`replies` are given in order, the last one again and again. `refuses`: fields that it answers 400 to."""

    models: list[dict[str, Any]] | None = field(default_factory=lambda: [{"id": "coder", "object": "model"}])
    replies: list[Reply] = field(default_factory=lambda: [Reply()])
    refuses: set[str] = field(default_factory=set)
    asked: list[Asked] = field(default_factory=list)
    port: int = 0
    gone: threading.Event = field(default_factory=threading.Event)  # a client left before the end

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def far_url(self) -> str:
        """Leads here, too, and is no loopback address."""
        return f"http://0.0.0.0:{self.port}/v1"

    @property
    def chats(self) -> list[dict[str, Any]]:
        return [one.body for one in self.asked if one.path.endswith("/chat/completions")]

    @property
    def sent(self) -> str:
        """All text of all requests."""
        return "\n".join(message["content"] for body in self.chats for message in body["messages"])

    def next_reply(self) -> Reply:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def serve(server: FakeServer) -> Iterator[FakeServer]:
    class Handler(JsonHandler):
        def do_GET(self) -> None:
            server.asked.append(Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, {}))
            if server.models is None:
                self.answer(404, {"error": {"message": "no such page"}})
            else:
                self.answer(200, {"object": "list", "data": server.models})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.asked.append(Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            refused = sorted(server.refuses & body.keys())
            if refused:
                self.answer(400, {"error": {"message": f"Unsupported parameter: '{refused[0]}'", "param": None}})
                return
            reply = server.next_reply()
            if reply.status != 200:
                self.answer(reply.status, reply.error, reply.headers)
                return
            time.sleep(reply.delay)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            data = reply.raw if reply.raw is not None else b"".join(_frames(reply))
            try:
                for at in range(0, len(data), reply.size):
                    self.wfile.write(data[at : at + reply.size])
                    self.wfile.flush()
                    time.sleep(reply.gap)
            except (BrokenPipeError, ConnectionResetError):
                server.gone.set()

    with serving(Handler) as server.port:
        yield server


def _frames(reply: Reply) -> Iterator[bytes]:
    def frame(choices: list[dict[str, Any]], **more: Any) -> bytes:
        chunk = {
            "id": "x",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": "coder",
            "choices": choices,
            **more,
        }
        return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"

    for index, text in enumerate(reply.texts):
        yield frame([{"index": index, "delta": {"role": "assistant", "content": None if text is None else ""}}])
    for index, text in enumerate(reply.texts):
        for at in range(0, len(text or ""), 5):
            yield frame([{"index": index, "delta": {"content": (text or "")[at : at + 5]}}])
    if reply.breaks:
        return
    for index, _ in enumerate(reply.texts):
        if reply.finish is not None:
            yield frame([{"index": index, "delta": {}, "finish_reason": reply.finish}])
    if reply.usage is not None:
        yield frame([], usage=reply.usage)
    yield b"data: [DONE]\n\n"
