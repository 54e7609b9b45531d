"""One selection for the editor: what it starts from and what it gives. Runs in the session's own thread."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentctx import settings
from agentctx.config import RunOptions
from agentctx.lsp.convert import buffer_bytes
from agentctx.pipeline.refs import parse_focus, parse_test
from agentctx.pipeline.select import Outcome
from agentctx.prompt import Task
from agentctx.repo.logsource import LogSource, open_log
from agentctx.report import RunReport
from agentctx.source import Link, RepoGraph

Selector = Callable[[Path, Task, RunOptions, Mapping[str, bytes]], Outcome]


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """The current task as the editor states it; nothing is read yet. `budget` None: the one of the configuration."""

    request: str = ""
    tests: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    focus: tuple[str, ...] = ()
    budget: int | None = None

    def __bool__(self) -> bool:
        return bool(self.request or self.tests or self.logs or self.focus)


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file in the editor. `version` is the editor's number for `text`."""

    uri: str
    version: int
    text: str


@dataclass(frozen=True, slots=True)
class Job:
    """`pins`: what was pinned in this session; `open`: by path, as they were when the job was made."""

    root: Path
    task: TaskRequest
    pins: tuple[str, ...]
    open: Mapping[str, OpenFile]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Selected:
    """What a job found. `links` are the graph's, by path and line; `data` is what was read, buffers included."""

    report: RunReport
    graph: RepoGraph
    links: Mapping[tuple[str, int], tuple[Link, ...]]
    data: Mapping[str, bytes]
    versions: Mapping[str, int]
    saved_pins: tuple[str, ...]


def run_job(job: Job, selector: Selector) -> Selected:
    """Read options, logs and buffers, and select.

    Raises:
        AgentctxError: as the pipeline does; ConfigError, TaskError for what the task or the files say.
    """
    flags = {"budget": job.task.budget, "drafter": "none"}
    options = settings.load(job.root, flags, job.environment).options
    overlay = _overlay(job)
    saved = _pins(overlay.get(settings.PROJECT_FILE), options.pins)
    pins = tuple(dict.fromkeys((*saved, *job.pins)))
    outcome = selector(job.root, _task(job, pins), options, overlay)
    index = outcome.understood.index
    return Selected(
        report=outcome.report,
        graph=index.graph,
        links=_links(index.graph),
        data={path: index.data[path] for path in index.graph.files},  # as it was: files may change later
        versions={path: file.version for path, file in job.open.items()},
        saved_pins=saved,
    )


def _task(job: Job, pins: tuple[str, ...]) -> Task:
    return Task(
        request=job.task.request,
        tests=tuple(parse_test(text, job.root) for text in job.task.tests),
        focus=tuple(parse_focus(text, job.root) for text in job.task.focus),
        pins=tuple(parse_focus(text, job.root) for text in pins),
        logs=tuple(read_log(name, job.root) for name in job.task.logs),
    )


def read_log(name: str, root: Path) -> tuple[str, LogSource]:
    """A log's name and what it holds; a relative path is seen from the root.

    Raises:
        TaskError: it can't be read.
    """
    file = root / name
    return file.name, open_log(file, name)


def _overlay(job: Job) -> dict[str, bytes]:
    """The bytes of open files that differ from what is on disk."""
    found = {}
    for path, file in sorted(job.open.items()):
        saved = saved_bytes(job.root / path)
        data = buffer_bytes(file.text, saved)
        if data != saved:
            found[path] = data
    return found


def saved_bytes(file: Path) -> bytes | None:
    """What is on disk, None where nothing can be read: the buffer is all that there is."""
    try:
        return file.read_bytes()
    except OSError:
        return None


def _pins(buffer: bytes | None, saved: tuple[str, ...]) -> tuple[str, ...]:
    """The pins of an unsaved configuration, once it is valid; else those on disk."""
    if buffer is None:
        return saved
    try:
        pins = tomllib.loads(buffer.decode("utf-8")).get("pins", [])
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return saved  # half typed
    return tuple(pin for pin in pins if isinstance(pin, str)) if isinstance(pins, list) else saved


def _links(graph: RepoGraph) -> dict[tuple[str, int], tuple[Link, ...]]:
    """Links by the place of their reference, in order of position."""
    found: dict[tuple[str, int], list[Link]] = {}
    for link in graph.links:
        found.setdefault((link.reference.path, link.reference.line), []).append(link)
    return {place: tuple(sorted(links, key=lambda link: link.reference.span)) for place, links in found.items()}
