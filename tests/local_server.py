"""A HTTP server in the test's own process."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class JsonHandler(BaseHTTPRequestHandler):
    def answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        """`body`: bytes as they are, all else as JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serving(handler: type[JsonHandler], closing: Callable[[], None] = lambda: None) -> Iterator[int]:
    """Gives the port. `closing`: called before the server waits for its requests to end."""
    made = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    made.daemon_threads = True
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made.server_address[1]
    finally:
        closing()
        made.shutdown()
        made.server_close()
        thread.join()
