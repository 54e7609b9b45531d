"""The openai engine against a server in this process: what it sends, what it takes, how it fails."""

from __future__ import annotations

import logging
import socket
import traceback
from dataclasses import replace
from typing import Any

import pytest

from agentctx.errors import AgentctxError, ConfigError, EngineUnavailable, ModelUnavailable, UsageError
from agentctx.prompt import Conversation
from agentctx.spec.engines import load, load_text
from agentctx.spec.engines.address import parse_address
from agentctx.spec.protocols import SampleParams, TextEngine
from tests.fake_server import FakeServer, Reply

KEY = "sk-proj-THISISTHEKEY0123456789abcdef"
SAID = Conversation("You fix bugs.", "Fix it. Grüße, 日本語")
GREEDY = SampleParams(max_new=64)
WARM = replace(GREEDY, temperature=0.8, top_p=0.9, seed=7)


def connect(server: FakeServer, model: str | None = None, **more: Any) -> TextEngine:
    return load_text("openai").connect(server.url, model, **{"key": None, "retries": 0, **more})


def ask(server: FakeServer, params: SampleParams = GREEDY, n: int = 1, **more: Any) -> list[str]:
    return [one.text for one in connect(server, **more).open(SAID).sample(n, params)]


# ---------------------------------------------------------------- what is sent


def test_a_greedy_request(server: FakeServer) -> None:
    server.replies = [Reply(["an answer"])]
    assert ask(server) == ["an answer"]
    [body] = server.chats
    assert body == {
        "model": "coder",
        "messages": [{"role": "system", "content": SAID.system}, {"role": "user", "content": SAID.user}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 64,
        "temperature": 0.0,
    }


def test_greedy_samples_are_one_request(server: FakeServer) -> None:
    server.replies = [Reply(["same"])]
    assert ask(server, n=3) == ["same"] * 3
    assert len(server.chats) == 1


def test_an_answer_ends_where_the_server_ends_it(server: FakeServer) -> None:
    with pytest.raises(ValueError, match="ends its answers"):
        ask(server, SampleParams(past_eos=True))
    assert not server.chats


def test_samples_are_one_request_where_the_server_knows_n(server: FakeServer) -> None:
    server.replies = [Reply(["one", "two", "three"])]
    assert ask(server, WARM, n=3) == ["one", "two", "three"]
    [body] = server.chats
    assert (body["n"], body["seed"], body["top_p"], body["temperature"]) == (3, 7, 0.9, 0.8)


def test_samples_are_asked_for_one_by_one_where_it_ignores_n(server: FakeServer) -> None:
    server.replies = [Reply(["one"]), Reply(["two"]), Reply(["three"]), Reply(["four"])]
    session = connect(server).open(SAID)
    assert [one.text for one in session.sample(3, WARM)] == ["one", "two", "three"]
    assert [body.get("n") for body in server.chats] == [3, None, None]
    assert [body["seed"] for body in server.chats] == [7, 8, 9]
    session.sample(1, WARM)
    assert server.chats[-1].get("n") is None  # learned
    assert "one answer per request" in session.notes[0]


@pytest.mark.parametrize("name", ["stream_options", "seed", "n", "top_p", "temperature"])
def test_what_a_strict_server_refuses_is_left_out_and_said(server: FakeServer, name: str) -> None:
    server.refuses, server.replies = {name}, [Reply(["a"]), Reply(["b"])]
    session = connect(server).open(SAID)
    assert [one.text for one in session.sample(2, WARM)] == ["a", "b"]
    assert name not in server.chats[-1]
    assert any(name in note for note in session.notes)


def test_the_newer_name_of_max_tokens(server: FakeServer) -> None:
    server.refuses, server.replies = {"max_tokens"}, [Reply(["a"])]
    assert ask(server) == ["a"]
    assert server.chats[-1]["max_completion_tokens"] == 64
    assert "max_tokens" not in server.chats[-1]


def test_an_unknown_refusal_is_an_error(server: FakeServer) -> None:
    server.refuses = {"messages"}
    with pytest.raises(EngineUnavailable, match=r"refuses the request \(400\).*messages"):
        ask(server)


def test_omlx_does_not_select_once_more(server: FakeServer) -> None:
    server.models = [{"id": "coder", "owned_by": "omlx"}]
    ask(server)
    assert server.chats[0]["specprefill"] is False


def test_a_key_is_sent_as_bearer(server: FakeServer) -> None:
    ask(server, key=KEY)
    assert {one.headers["authorization"] for one in server.asked} == {f"Bearer {KEY}"}


# ---------------------------------------------------------------- what comes back


def test_usage_and_times(server: FakeServer) -> None:
    server.replies = [Reply(["a longer answer"], delay=0.05)]
    session = connect(server).open(SAID)
    [answer] = session.sample(1, GREEDY)
    assert answer.n_tokens == 20
    assert (session.usage.prompt_tokens, session.usage.cached_tokens) == (900, 640)
    assert session.usage.ttft is not None
    assert session.usage.ttft >= 0.05
    assert session.usage.decode_tokens_per_second is not None


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": "many"}])
def test_no_usage_is_unknown(server: FakeServer, usage: dict[str, Any] | None) -> None:
    server.replies = [Reply(["0123456789"], usage=usage)]
    session = connect(server).open(SAID)
    [answer] = session.sample(1, GREEDY)
    assert answer.n_tokens == 2  # pieces that came
    assert session.usage.prompt_tokens is session.usage.cached_tokens is None
    assert session.usage.decode_tokens_per_second is None


def test_omlx_counts_cached_tokens_elsewhere(server: FakeServer) -> None:
    server.replies = [Reply(["x"], usage={"prompt_tokens": 9, "cached_tokens": 4})]
    session = connect(server).open(SAID)
    session.sample(1, GREEDY)
    assert session.usage.cached_tokens == 4


@pytest.mark.parametrize("size", [1, 3, 7])
def test_frames_and_characters_may_be_cut_anywhere(server: FakeServer, size: int) -> None:
    text = "Grüße, 日本語 𝄞\r\n```python\n"
    server.replies = [Reply([text], size=size)]
    assert ask(server) == [text]


def test_no_content_is_an_empty_answer(server: FakeServer) -> None:
    server.replies = [Reply([None])]
    assert ask(server) == [""]


def test_thoughts_are_no_part_of_the_answer(server: FakeServer) -> None:
    server.replies = [Reply(["<think>\n```python\nx\n```\n</think>\n\nthe answer"])]
    assert ask(server) == ["the answer"]


@pytest.mark.parametrize(
    ("finish", "ours"), [("stop", "stop"), ("length", "length"), ("content_filter", "length"), (None, "length")]
)
def test_how_an_answer_ended(server: FakeServer, finish: str | None, ours: str) -> None:
    server.replies = [Reply(["x"], finish=finish)]
    session = connect(server).open(SAID)
    assert session.sample(1, GREEDY)[0].finish == ours
    assert (finish is None) == any("didn't say why" in note for note in session.notes)


def heard(server: FakeServer, params: SampleParams, n: int = 1) -> dict[int, list[str]]:
    """The pieces; they are the answers' texts."""
    found: dict[int, list[str]] = {}
    drawn = (
        connect(server).open(SAID).sample(n, params, lambda sample, piece: found.setdefault(sample, []).append(piece))
    )
    told = drawn if params.temperature else drawn[:1]
    assert {sample: "".join(pieces) for sample, pieces in found.items()} == {
        number: one.text for number, one in enumerate(told) if one.text
    }
    return found


def test_pieces_are_heard_as_they_come(server: FakeServer) -> None:
    server.replies = [Reply(["def f():\n    pass\n"], size=5)]
    assert len(heard(server, GREEDY)[0]) > 2
    server.replies = [Reply(["def f():\n```\nand on"], size=3)]
    assert "".join(heard(server, replace(GREEDY, stop=("```",)))[0]) == "def f():\n```"


def test_samples_of_one_request_and_of_several_are_heard_by_number(server: FakeServer) -> None:
    server.replies = [Reply(["one", "two", "three"])]
    assert set(heard(server, WARM, n=3)) == {0, 1, 2}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>\n```python\nx\n```\n</think>\n\nthe answer", "the answer"),
        ("  <think>a</think>b", "b"),
        ("<think>never ended", "<think>never ended"),
        ("<thinker> is a tag", "<thinker> is a tag"),
        ("<thi", "<thi"),
    ],
)
def test_thoughts_are_not_heard(server: FakeServer, text: str, answer: str) -> None:
    for size in (1, 4, 100):
        server.replies = [Reply([text], size=size)]
        assert "".join(heard(server, GREEDY)[0]) == answer


def test_a_stop_string_stays_and_ends_the_request(server: FakeServer) -> None:
    server.replies = [Reply(["def f():\n    pass\n```\n" + "and on " * 20_000], finish="length", size=2000, gap=0.002)]
    session = connect(server).open(SAID)
    [answer] = session.sample(1, replace(GREEDY, stop=("\n```",)))
    assert answer.text == "def f():\n    pass\n```"
    assert answer.finish == "stop"
    assert "stop" not in server.chats[0]
    assert server.gone.wait(5), "the server goes on generating"


# ---------------------------------------------------------------- models


def test_the_only_model_is_taken(server: FakeServer) -> None:
    server.models = [{"id": "only", "max_model_len": 4096}]
    served = connect(server).served
    assert (served.name, served.context, served.is_local) == ("only", 4096, True)
    assert served.host == f"127.0.0.1:{server.port}"


@pytest.mark.parametrize(
    ("row", "context"),
    [({}, None), ({"meta": {"n_ctx": 2048}}, 2048), ({"context_length": 9}, 9), ({"max_model_len": "big"}, None)],
)
def test_the_context(server: FakeServer, row: dict[str, Any], context: int | None) -> None:
    server.models = [{"id": "m", **row}]
    assert connect(server).served.context == context


def test_one_of_several_models_must_be_named(server: FakeServer) -> None:
    server.models = [{"id": "a"}, {"id": "b"}]
    with pytest.raises(ModelUnavailable, match="has 2 models") as caught:
        connect(server)
    assert "a, b" in str(caught.value.hint)
    assert connect(server, "b").served.name == "b"


def test_no_model(server: FakeServer) -> None:
    server.models = []
    with pytest.raises(ModelUnavailable, match="serves no model"):
        connect(server)


def test_a_server_without_a_list(server: FakeServer) -> None:
    server.models = None
    assert connect(server, "coder").served.name == "coder"
    with pytest.raises(ModelUnavailable, match="doesn't list its models"):
        connect(server)


# ---------------------------------------------------------------- failures


FAILURES: list[tuple[Reply, type[AgentctxError], str]] = [
    (Reply(status=401, error={"error": {"message": f"Incorrect API key provided: {KEY}."}}), EngineUnavailable, "key"),
    (Reply(status=403, error={"error": {"message": "no"}}), EngineUnavailable, r"refuses the API key \(403\)"),
    (Reply(status=404, error={"error": {"message": "model not found"}}), ModelUnavailable, "has no model 'coder'"),
    (Reply(status=429, error={"error": {"message": "slow down"}}), EngineUnavailable, "no more requests now"),
    (Reply(status=500, error={"error": {"message": "boom"}}), EngineUnavailable, r"failed \(500\): boom"),
    (Reply(status=503, error=b"<html>loading</html>"), EngineUnavailable, r"failed \(503\)"),
    (Reply(status=302, error={}, headers={"Location": "http://127.0.0.1:9/v1"}), EngineUnavailable, "elsewhere"),
    (
        Reply(status=400, error={"error": {"message": "This model's maximum context length is 4096 tokens."}}),
        UsageError,
        "too long for coder",
    ),
    (Reply(raw=b'data: {"error": {"message": "out of memory"}}\n\n'), EngineUnavailable, "gave up: out of memory"),
    (Reply(raw=b"data: {not json\n\n"), EngineUnavailable, "no chat completion"),
    (Reply(raw=b'data: {"choices": ["x"]}\n\n'), EngineUnavailable, "no chat completion"),
    (Reply(raw=b'{"hello": "world"}'), EngineUnavailable, "no chat completion"),
    (Reply(raw=b""), EngineUnavailable, "no chat completion"),
]


@pytest.mark.parametrize(("reply", "kind", "said"), FAILURES, ids=[str(n) for n in range(len(FAILURES))])
def test_failures(
    server: FakeServer, reply: Reply, kind: type[AgentctxError], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.replies = [reply]
    with pytest.raises(kind, match=said) as caught:
        ask(server, key=KEY)
    shown = (
        "".join(traceback.format_exception(caught.value)) + str(caught.value.hint) + repr(caught.value) + caplog.text
    )
    assert KEY not in shown
    assert caught.value.__cause__ is None


def test_the_key_is_in_no_text_of_ours(server: FakeServer) -> None:
    engine = connect(server, key=KEY)
    assert KEY not in repr(engine) + repr(engine.open(SAID)) + str(engine.served)


def test_an_answer_that_stops_short_counts_as_cut_off(server: FakeServer) -> None:
    server.replies = [Reply(["half of"], breaks=True)]
    [answer] = connect(server).open(SAID).sample(1, GREEDY)
    assert answer.finish == "length"


def test_a_slow_answer(server: FakeServer) -> None:
    server.replies = [Reply(["x"], delay=1.0)]
    with pytest.raises(EngineUnavailable, match="didn't answer in time"):
        ask(server, read_seconds=0.1)


def test_a_timeout_within_the_answer(server: FakeServer) -> None:
    server.replies = [Reply(["word " * 50], size=600, gap=1.0)]
    with pytest.raises(EngineUnavailable, match="didn't answer in time"):
        ask(server, read_seconds=0.2)


def test_a_failure_that_passes_is_tried_again(server: FakeServer) -> None:
    server.replies = [Reply(status=503, error={}, headers={"retry-after-ms": "10"}), Reply(["done"])]
    assert ask(server, retries=1) == ["done"]


def test_nobody_there() -> None:
    pytest.importorskip("openai")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(EngineUnavailable, match=r"can.t reach a server at 127\.0\.0\.1"):
        load_text("openai").connect(f"http://127.0.0.1:{port}/v1", None, key=KEY)


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "umlaut-ü"])
def test_a_malformed_key_is_not_shown(server: FakeServer, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        connect(server, key=key)
    assert key not in "".join(traceback.format_exception(caught.value))
    assert not server.asked


def test_it_runs_no_weights() -> None:
    with pytest.raises(EngineUnavailable, match="sends text to a server"):
        load("openai")


# ---------------------------------------------------------------- addresses


@pytest.mark.parametrize(
    ("url", "base", "host", "local"),
    [
        ("http://localhost:8000/v1", "http://localhost:8000/v1", "localhost:8000", True),
        ("http://localhost:11434", "http://localhost:11434/v1", "localhost:11434", True),
        ("http://127.5.5.5/v1/", "http://127.5.5.5/v1", "127.5.5.5", True),
        ("http://[::1]:80/v1", "http://[::1]:80/v1", "[::1]:80", True),
        ("https://api.example.com/v1/chat/completions", "https://api.example.com/v1", "api.example.com", False),
        ("http://10.0.0.7:8000/v1", "http://10.0.0.7:8000/v1", "10.0.0.7:8000", False),
        ("http://localhost.evil.example/v1", "http://localhost.evil.example/v1", "localhost.evil.example", False),
        ("http://127.0.0.1.evil.example/v1", "http://127.0.0.1.evil.example/v1", "127.0.0.1.evil.example", False),
    ],
)
def test_addresses(url: str, base: str, host: str, local: bool) -> None:
    made = parse_address(url)
    assert (made.base, made.host, made.is_local) == (base, host, local)


@pytest.mark.parametrize(
    "url",
    ["", "localhost:8000", "ftp://x/v1", "http://", "http://u:hunter2@h/v1", "http://h/v1?key=hunter2", "http://[x"],
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_address(url)
    assert "hunter2" not in str(caught.value)
