"""Which runs there are, and whose result counts. The selector here ends every run with a message of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agentctx.config import RunOptions
from agentctx.errors import TaskError
from agentctx.lsp.job import OpenFile, TaskRequest
from agentctx.lsp.session import Session
from agentctx.lsp.view import State, View
from agentctx.pipeline.select import Outcome
from agentctx.prompt import Task


class Selector:
    """Waits until it is let go, then fails with the number of the run."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.started = threading.Event()
        self.tasks: list[Task] = []
        self.overlays: list[Mapping[str, bytes]] = []

    def __call__(self, root: Path, task: Task, options: RunOptions, overlay: Mapping[str, bytes]) -> Outcome:
        self.tasks.append(task)
        self.overlays.append(overlay)
        self.started.set()
        assert self.go.wait(10)
        raise TaskError(f"run {len(self.tasks)}")


@asynccontextmanager
async def session(root: Path, selector: Selector, seen: list[View]) -> AsyncIterator[Session]:
    one = Session(root, selector, {"AGENTCTX_CONFIG_DIR": str(root)}, TaskRequest(), seen.append)
    yield one
    selector.go.set()
    one.shut_down()


async def until(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, 10)


async def test_a_result_that_came_too_late_is_dropped(tmp_path: Path) -> None:
    selector, seen = Selector(), list[View]()
    async with session(tmp_path, selector, seen) as one:
        one.set_task(TaskRequest("first"))
        await until(selector.started)
        one.put("a.py", OpenFile("file:///a.py", 1, "x = 1\n"))
        selector.go.set()
        view = await one.settled()
    assert view.message == "run 2"
    assert [v.message for v in seen if v.state is State.FAILED] == ["run 2"]
    assert [sorted(overlay) for overlay in selector.overlays] == [[], ["a.py"]]


async def test_many_changes_make_one_run(tmp_path: Path) -> None:
    selector, seen = Selector(), list[View]()
    selector.go.set()
    async with session(tmp_path, selector, seen) as one:
        one.set_task(TaskRequest("x"))
        for version in range(20):
            one.put("a.py", OpenFile("file:///a.py", version, f"x = {version}\n"))
        await one.settled()
    assert [overlay["a.py"] for overlay in selector.overlays] == [b"x = 19\n"]
    assert [view.state for view in seen] == [State.RUNNING, State.FAILED]


async def test_a_task_that_ends_meanwhile(tmp_path: Path) -> None:
    selector, seen = Selector(), list[View]()
    async with session(tmp_path, selector, seen) as one:
        one.set_task(TaskRequest("x"))
        await until(selector.started)
        one.set_task(TaskRequest())
        assert (await one.settled()).state is State.NO_TASK
        selector.go.set()
        await asyncio.sleep(0.1)
        assert one.snapshot().state is State.NO_TASK
    assert len(selector.tasks) == 1


async def test_pins_of_the_session_and_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "agentctx.toml").write_text('pins = ["a.py#f"]\n')
    selector = Selector()
    selector.go.set()
    async with session(tmp_path, selector, []) as one:
        one.set_task(TaskRequest("x", budget=900))
        one.pin("b.py#g")
        one.pin("a.py#f")
        await one.settled()
        assert [pin.text for pin in selector.tasks[-1].pins] == ["a.py#f", "b.py#g"]

        one.put("agentctx.toml", OpenFile("file:///agentctx.toml", 1, 'pins = ["c.py:3"]\n'))
        await one.settled()
        assert [pin.text for pin in selector.tasks[-1].pins] == ["c.py:3", "b.py#g", "a.py#f"]

        n_runs = len(selector.tasks)
        one.look()
        await one.settled()
        assert len(selector.tasks) == n_runs
        (tmp_path / "agentctx.toml").write_text("budget = 12345\n")
        one.look()
        await one.settled()
        assert len(selector.tasks) == n_runs + 1


async def test_an_error_of_ours_is_said_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def broken(root: Path, task: Task, options: RunOptions, overlay: Mapping[str, bytes]) -> Outcome:
        raise ZeroDivisionError("oh")

    one = Session(tmp_path, broken, {"AGENTCTX_CONFIG_DIR": str(tmp_path)}, TaskRequest("x"), lambda view: None)
    one.touch(0.0)
    view = await one.settled()
    one.shut_down()
    assert view.state is State.FAILED
    assert view.message.startswith("a bug: ZeroDivisionError: oh")
    assert "the selection failed" in caplog.text
