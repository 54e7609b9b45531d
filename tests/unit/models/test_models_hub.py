"""The hub: against a small server that speaks its protocol, and without a network."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agentctx.models.hub import is_hub_id
from tests.unit.models.tiny_models import Tiny

pytest.importorskip("huggingface_hub")
ROOT = Path(__file__).parents[3]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(ThreadingHTTPServer):
    """Serves the repository `org/tiny`; counts the bytes of weights that it sent."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = files
        self.sent: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        path = self.path.partition("?")[0]
        if path == "/":
            return self.send(b"hub", body=body)
        if path.startswith("/api/models/org/tiny/tree/"):
            rows = [
                {"type": "file", "path": n, "size": len(raw), "oid": "0" * 40} for n, raw in self.server.files.items()
            ]
            return self.send(json.dumps(rows).encode(), body=body)
        if path.startswith("/api/models/org/tiny"):
            siblings = [{"rfilename": name} for name in sorted(self.server.files)]
            document = {
                "id": "org/tiny",
                "sha": COMMIT,
                "siblings": siblings,
                "private": False,
                "tags": [],
                "downloads": 0,
            }
            return self.send(json.dumps(document).encode(), body=body)
        name = path.rpartition("/")[2]
        if path.startswith("/org/tiny/resolve/") and name in self.server.files:
            if body:
                self.server.sent.append(name)
            return self.send(self.server.files[name], body=body)
        self.send_response(404)
        self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("Content-Length", "0")
        return self.end_headers()

    def send(self, raw: bytes, *, body: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(raw)))
        self.send_header("ETag", f'"{hashlib.sha256(raw).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if body:
            self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def hub(tiny_folder: Path, tiny: Tiny) -> Iterator[Hub]:
    files = {path.name: path.read_bytes() for path in tiny_folder.iterdir() if path.name != "agentctx.json"}
    server = Hub({**files, "tiny.gguf": tiny.gguf.read_bytes(), "weights.bin": b"pickle"})
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def python(code: str, tmp_path: Path, **env: str) -> list[str]:
    """The library reads its environment when it is imported, so each case is a process."""
    environment = {
        **os.environ,
        "HF_HOME": str(tmp_path / "hf"),
        "PYTHONPATH": str(ROOT),
        "NO_PROXY": "127.0.0.1",
        **env,
    }
    prelude = (
        "from pathlib import Path\nfrom agentctx.errors import UnavailableError\n"
        f"cache = Path({str(tmp_path / 'cache')!r})\n"
    )
    guarded = "try:\n" + "".join(f"    {line}\n" for line in code.splitlines())
    tail = "except UnavailableError as error:\n    print(error.exit_code, error.message, '|', error.hint)\n"
    command = [sys.executable, "-c", prelude + guarded + tail]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


RESOLVE = "from agentctx.models.store import resolve\nprint(resolve('org/tiny', cache).name)"


def test_a_hub_model_is_fetched_once_and_then_found_offline(hub: Hub, tmp_path: Path) -> None:
    assert python(RESOLVE, tmp_path, HF_ENDPOINT=hub.url) == ["org/tiny"]
    assert sorted(hub.sent) == ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    assert python(RESOLVE, tmp_path, HF_HUB_OFFLINE="1") == ["org/tiny"]


def test_counting_fetches_no_weights(hub: Hub, tmp_path: Path) -> None:
    count = (
        "from agentctx.models.counting import tokenizer_for\n"
        "t = tokenizer_for('org/tiny', None, cache)\nprint(t.name, t.count_batch(['def self']))"
    )
    assert python(count, tmp_path, HF_ENDPOINT=hub.url) == ["org/tiny [2]"]
    assert hub.sent == ["tokenizer.json"]
    assert python(RESOLVE, tmp_path, HF_ENDPOINT=hub.url) == ["org/tiny"]


def test_a_known_model_comes_from_the_hub_if_that_answers(hub: Hub, tiny: Tiny, tmp_path: Path) -> None:
    model = tiny.model
    code = (
        "from agentctx.models.registry import KnownModel, Part\nfrom agentctx.models.store import fetch\n"
        f"size, sha256, hub = {model.n_bytes}, {model.sha256!r}, {model.hub!r}\n"
        "m = KnownModel('tiny', 'tiny', 512, 100, (Part('none', '1', '*'),), size, sha256, 0, hub)\n"
        "r = fetch(m, cache)\nprint(r.origin, r.notes)"
    )
    assert python(code, tmp_path, HF_ENDPOINT=hub.url) == ["the hub (org/tiny) ()"]
    assert hub.sent == ["tiny.gguf"]
    assert sorted(path.name for path in (tmp_path / "cache" / "models").iterdir()) == [".tiny.lock", "tiny"]


def test_without_a_network_the_message_is_clear_and_comes_at_once(tmp_path: Path) -> None:
    (line,) = python(RESOLVE, tmp_path, HF_ENDPOINT="http://127.0.0.1:9")
    assert line.startswith("4 model 'org/tiny': the model hub can't be reached (")
    assert "agentctx models list" in line
    (line,) = python(RESOLVE, tmp_path, HF_HUB_OFFLINE="1")
    assert line.startswith("4 model 'org/tiny' is not in the cache, and HF_HUB_OFFLINE forbids to fetch it")


def test_an_unknown_model_of_the_hub(hub: Hub, tmp_path: Path) -> None:
    (line,) = python(RESOLVE.replace("org/tiny", "org/absent"), tmp_path, HF_ENDPOINT=hub.url)
    assert line.startswith("4 model 'org/absent' could not be fetched from the hub: ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Qwen/Qwen2.5-Coder-7B", True),
        ("org/name", True),
        ("name", False),
        ("/abs/path", False),
        ("./here/x", False),
        ("a/b/c", False),
        ("a/..", False),
    ],
)
def test_hub_ids(text: str, expected: bool) -> None:
    assert is_hub_id(text) is expected
