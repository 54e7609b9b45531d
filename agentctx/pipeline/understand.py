"""The repository and the task: scan, index, read logs and changes, locate, rank. Nothing is packed yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agentctx.config import RunOptions
from agentctx.pipeline.changes import read_changes
from agentctx.pipeline.coverage import read_coverage
from agentctx.pipeline.history import read_history
from agentctx.pipeline.index import Index, link, marked_files, read_tree
from agentctx.pipeline.services import Clock, Services
from agentctx.prompt import Evidence, Finding, Task
from agentctx.repo.coverage import Coverage
from agentctx.repo.history import History
from agentctx.repo.locate import Located, locate
from agentctx.repo.logs import read_logs
from agentctx.repo.pin_comments import comment_pins
from agentctx.repo.rank import Ranked, rank
from agentctx.repo.ranking.model import load
from agentctx.repo.working_set import wanted_of


@dataclass(frozen=True, slots=True)
class Understood:
    """The repository and the task, ranked; nothing packed yet."""

    index: Index
    task: Task
    evidence: Evidence
    located: Located
    ranking: tuple[Ranked, ...]
    history: History | None = None
    coverage: Coverage | None = None
    findings: tuple[Finding, ...] = ()


def understand(
    root: Path,
    task: Task,
    services: Services,
    clock: Clock,
    overlay: Mapping[str, bytes] | None = None,
    *,
    options: RunOptions | None = None,
    withheld: Callable[[str], str | None] = lambda path: None,
) -> Understood:
    """Index the repository, read logs and changes, find what the task is about and rank everything else.

    `withheld`: why a file must not be in the prompt; it is skipped then.

    Raises:
        RepoError, TaskError, UsageError: see `read_tree`, `locate` and `read_changes`.
        ModelUnavailable: the ranking model can't be read.
    """
    options = options or RunOptions()
    tree = read_tree(root, services, clock, overlay, cached=options.cache).without(withheld)
    with clock.stage("evidence"):
        evidence = read_logs(task.logs, frozenset(tree.data))
        made = read_changes(root, tree, options, [ref.path for ref in task.tests], overlay)
        evidence = replace(evidence, changes=made.changes, notes=(*evidence.notes, *made.notes))
    changed = [change.path for change in made.changes]
    index = link(tree, services, clock, wanted_of(task, evidence, [*marked_files(root, tree), *changed]))
    with clock.stage("evidence"):
        marked = comment_pins(index.graph.files, index.data)
        located = locate(task, evidence, index.graph, index.skipped, marked)
    with clock.stage("history"):
        past, notes = read_history(root, index.row.head)
        evidence = replace(evidence, notes=(*evidence.notes, *notes))
        covered, findings = read_coverage(root, options.coverage, index.data, located.failing_tests)
    with clock.stage("rank"):
        model = load(Path(options.rank_model).expanduser()) if options.rank_model is not None else None
        said = (f"ranked by the model {options.rank_model}",) if options.rank_model is not None else ()
        evidence = replace(evidence, notes=(*evidence.notes, *said))
        ranking = rank(index.graph, index.data, task, evidence, located, model, past)
    return Understood(index, task, evidence, located, ranking, past, covered, findings)
