"""The language server's only mutable state: open files, the current task, and its newest selection.

All methods run on the event loop's thread. A selection runs in a thread of its own (never in the server's pool,
which also reads the client's messages); one runs at a time, and its result is dropped when anything has changed
meanwhile. Events that change nothing that a selection reads (a file is opened as it is on disk) don't ask for one.
Features get a frozen `View`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from agentctx import settings
from agentctx.errors import AgentctxError
from agentctx.lsp.convert import buffer_bytes
from agentctx.lsp.job import Job, OpenFile, Selected, Selector, TaskRequest, run_job, saved_bytes
from agentctx.lsp.view import State, View

log = logging.getLogger(__name__)

DEBOUNCE = 0.3  # seconds from the last change of a text to the selection
CONFIGURATION = (settings.PROJECT_FILE, "pyproject.toml")
NO_TASK = "No current task. Set one with 'agentctx: Set Current Task' (request agentctx/setTask)."


class Session:
    """`changed` is called with the new view whenever the state or the selection has changed."""

    def __init__(
        self,
        root: Path,
        selector: Selector,
        environment: Mapping[str, str],
        task: TaskRequest,
        changed: Callable[[View], None],
    ) -> None:
        self.root = root
        self._selector = selector
        self._environment = environment
        self._task = task
        self._budget = task.budget  # of tasks that don't say one
        self._changed = changed
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="agentctx-select")
        self._pins: tuple[str, ...] = ()
        self._open: dict[str, OpenFile] = {}
        self._disk: dict[str, bytes | None] = {}  # of open files: what was on disk when we were last told to look
        self._selected: Selected | None = None
        self._number = 0
        self._state = State.NO_TASK
        self._message = NO_TASK
        self._stamp = _stamp(root)
        self._wanted = 0  # grows with everything that asks for a new selection
        self._timer: asyncio.TimerHandle | None = None
        self._running: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    # ------------------------------------------------------------ reading

    def snapshot(self) -> View:
        return View(
            root=self.root,
            state=self._state,
            message=self._message,
            task=self._task,
            pins=self._pins,
            open=MappingProxyType(dict(self._open)),
            selected=self._selected,
            number=self._number,
        )

    async def settled(self) -> View:
        """The view once no selection is due or running."""
        await self._idle.wait()
        return self.snapshot()

    # ------------------------------------------------------------ changing

    def put(self, path: str, file: OpenFile) -> None:
        """A file was opened or its text changed."""
        before = self._open.get(path)
        if before is None:
            self._disk[path] = saved_bytes(self.root / path)
        self._open[path] = file
        news = self._is_edited(path, file) if before is None else before.text != file.text
        if news or self._state is State.FAILED:
            self.touch(DEBOUNCE)

    def close(self, path: str) -> None:
        """A file was closed: what is on disk counts again."""
        file = self._open.pop(path, None)
        if file is not None and self._is_edited(path, file):
            self.touch(DEBOUNCE)
        self._disk.pop(path, None)

    def written(self, paths: Iterable[str | None], delay: float) -> None:
        """Files were saved, or changed outside of the editor. Editors tell twice of their own saves: it counts once."""
        news = [self._is_news(path) for path in paths]  # all of them: each look is remembered
        if any(news) or self._state is State.FAILED:
            self.touch(delay)

    def _is_edited(self, path: str, file: OpenFile) -> bool:
        """Whether the text isn't what was last seen on disk."""
        saved = self._disk.get(path)
        return saved is None or buffer_bytes(file.text, saved) != saved

    def _is_news(self, path: str | None) -> bool:
        if path is None or path not in self._open:
            return True
        before, self._disk[path] = self._disk.get(path), saved_bytes(self.root / path)
        return self._disk[path] != before

    def set_task(self, task: TaskRequest) -> None:
        """Replace the current task; an empty one ends it."""
        self._task = task if task.budget is not None else replace(task, budget=self._budget)
        self._pins = ()
        self._selected = None
        self._number += 1
        self.touch(0.0)

    def pin(self, pin: str) -> None:
        """Keep something from now on, whether or not the configuration says so already."""
        self._pins = tuple(dict.fromkeys((*self._pins, pin)))
        self.touch(0.0)

    def look(self) -> None:
        """Select again if the configuration has changed on disk: not every editor tells."""
        if self._running is None and self._timer is None and _stamp(self.root) != self._stamp:
            self.touch(0.0)

    def touch(self, delay: float) -> None:
        """Ask for a new selection after `delay` seconds without another such call."""
        self._wanted += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._task:
            self._enter(State.NO_TASK, NO_TASK)
            return
        self._idle.clear()
        self._timer = asyncio.get_running_loop().call_later(delay, self._due)
        self._enter(State.RUNNING, "Selecting")

    def shut_down(self) -> None:
        """Take no more work. A running selection ends by itself; its result goes nowhere."""
        self._task = TaskRequest()
        self._wanted += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._idle.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    # ------------------------------------------------------------ running

    def _due(self) -> None:
        self._timer = None
        if self._running is None:  # else the running one starts us when it ends
            self._running = asyncio.get_running_loop().create_task(self._run(self._wanted))

    async def _run(self, number: int) -> None:
        self._stamp = _stamp(self.root)
        job = Job(self.root, self._task, self._pins, MappingProxyType(dict(self._open)), self._environment)
        future = asyncio.get_running_loop().run_in_executor(self._pool, run_job, job, self._selector)
        await asyncio.wait([future])
        self._running = None
        error = future.exception()
        if number != self._wanted:
            if self._timer is None and self._task:
                self._due()
            return
        if error is None:
            self._succeed(future.result())
        else:
            self._fail(error)

    def _succeed(self, selected: Selected) -> None:
        self._selected = selected
        self._pins = tuple(pin for pin in self._pins if pin not in selected.saved_pins)
        self._number += 1
        budget = selected.report.budget
        self._enter(State.READY, f"Kept {budget.kept:,} of {budget.packed:,} packed tokens (limit {budget.limit:,})")
        view = self.snapshot()
        if any(path in selected.data and view.fresh(path) is None for path in view.open):
            self.touch(0.0)  # opened meanwhile, and changed on disk between our look and the selection's

    def _fail(self, error: BaseException) -> None:
        self._selected = None
        self._number += 1
        if isinstance(error, AgentctxError):
            log.warning("%s", error.message)
            hint = f"; {error.hint}" if error.hint else ""
            self._enter(State.FAILED, f"{error.message}{hint}")
        else:
            log.error("the selection failed", exc_info=error)
            self._enter(State.FAILED, f"a bug: {type(error).__name__}: {error} (the log has the details)")

    def _enter(self, state: State, message: str) -> None:
        if state is not State.RUNNING:
            self._idle.set()
        repeated = (state, message) == (self._state, self._message) and state is not State.READY
        self._state, self._message = state, message
        if not repeated:
            self._changed(self.snapshot())


def _stamp(root: Path) -> tuple[tuple[int, int] | None, ...]:
    """What changes when the configuration is written: (time of change, size) of its files, None for a missing one."""
    found: list[tuple[int, int] | None] = []
    for name in CONFIGURATION:
        try:
            status = (root / name).stat()
        except OSError:
            found.append(None)
        else:
            found.append((status.st_mtime_ns, status.st_size))
    return tuple(found)
