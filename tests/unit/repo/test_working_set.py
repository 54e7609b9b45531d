"""Large repositories: what the catalog answers, which files are loaded, and that nothing looks surer than it is."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentctx.config import RunOptions
from agentctx.pipeline import index as pipeline_index
from agentctx.pipeline.select import run
from agentctx.pipeline.services import Clock
from agentctx.prompt import Evidence, FocusRef, Frame, Task, TestRef
from agentctx.repo.catalog import Catalog
from agentctx.repo.catalog_row import catalog_row, term_hash
from agentctx.repo.graph import build_graph
from agentctx.repo.imported_paths import ImportedPaths
from agentctx.repo.parse import parse
from agentctx.repo.partial import partial_graph
from agentctx.repo.terms import bag, bm25, query_terms
from agentctx.repo.working_set import Size, Wanted, wanted_of, working_set
from agentctx.source import FileSyntax, Import, Resolution, SourceFile, SymbolKind
from tests.services import PlainServices
from tests.unit_checks import source

FILES = {
    "pkg/__init__.py": "from .core import Engine\n",
    "pkg/core.py": "from . import util\n\nclass Engine:\n    def start(self, x): return util.warm(x.only_here())\n",
    "pkg/util.py": "from .deep import base\n\ndef warm(x): return base(x)\n",
    "pkg/deep.py": "def base(x): return x.ratio()\n",
    "pkg/other.py": "class Rate:\n    def ratio(self): return 1\n",
    "pkg/second.py": "class Share:\n    def ratio(self): return 2\n",
    "pkg/lonely.py": "class Lonely:\n    def only_here(self): return 3\n",
    "pkg/user.py": "from pkg import Engine\n\ndef drive(): Engine().start(None)\n",
    "tests/test_core.py": "from pkg.core import Engine\n\ndef test_start(): assert Engine().start(None)\n",
    "docs/zebra.md": "# About the zebra\n\nThe zebra engine.\n",
}


def files(texts: Mapping[str, str] = FILES) -> dict[str, SourceFile]:
    return {path: source(path, text) for path, text in texts.items()}


def catalog_of(sources: Mapping[str, SourceFile]) -> Catalog:
    return Catalog({path: catalog_row(file.data, parse(file).symbols) for path, file in sources.items()})


# ---------------------------------------------------------------- catalog


def test_scores_are_bm25_over_whole_files() -> None:
    sources = files()
    catalog = catalog_of(sources)
    query = query_terms("the Engine should start warm; baseRatio")
    documents = [bag(sources[path].data.decode(), query) for path in catalog.paths]
    assert catalog.scores(query).tolist() == pytest.approx(bm25(documents, query))
    scores = dict(zip(catalog.paths, catalog.scores(query).tolist(), strict=True))
    assert catalog.best(query, 3) == tuple(sorted(scores, key=lambda path: (-scores[path], path))[:3])
    assert catalog.best(query, 99) == tuple(path for path in catalog.best(query, 99) if scores[path] > 0)
    assert catalog.best(query_terms("nothing_of_this_kind"), 5) == ()
    assert catalog.best(frozenset(), 5) == ()


def test_who_mentions_and_who_defines() -> None:
    catalog = catalog_of(files())
    assert catalog.mentioning("Engine") == (
        "docs/zebra.md",
        "pkg/__init__.py",
        "pkg/core.py",
        "pkg/user.py",
        "tests/test_core.py",
    )
    assert catalog.mentioning("absent") == ()
    assert catalog.defining(["ratio", "Engine", "nope", "engine"]) == {
        "Engine": (("pkg/core.py", SymbolKind.CLASS),),
        "ratio": (("pkg/other.py", SymbolKind.METHOD), ("pkg/second.py", SymbolKind.METHOD)),
    }


def test_the_order_of_rows_does_not_matter() -> None:
    rows = {path: catalog_row(file.data, parse(file).symbols) for path, file in files().items()}
    shuffled = list(rows.items())
    random.Random(3).shuffle(shuffled)
    query = query_terms("engine start warm ratio")
    assert Catalog(dict(shuffled)).scores(query).tolist() == Catalog(rows).scores(query).tolist()
    assert Catalog(dict(shuffled)).paths == Catalog(rows).paths


def test_rows_are_the_same_on_every_machine() -> None:
    row = catalog_row(b"parseArgs(x)\nparseArgs\n" + b"x " * 300, ())
    terms = struct.unpack(f"<{len(row.terms) // 4}I", row.terms)
    assert dict(zip(terms, row.counts, strict=True)) == {
        term_hash("parseargs"): 2,
        term_hash("parse"): 2,
        term_hash("args"): 2,
        term_hash("x"): 255,
    }
    assert list(terms) == sorted(terms)
    assert (term_hash("x"), row.n_words) == (0x8CDC1683, 307)


def test_an_empty_catalog_answers() -> None:
    for catalog in (Catalog({}), catalog_of(files({"a.py": ""}))):
        assert catalog.best(query_terms("a"), 3) == ()
        assert (catalog.mentioning("a"), catalog.defining(["a"])) == ((), {})


# ---------------------------------------------------------------- imports by their text

PATHS = (
    "src/pkg/__init__.py",
    "src/pkg/core.py",
    "src/pkg/sub/deep.py",
    "vendor/pkg/core.py",
    "web/lib/index.ts",
    "web/lib/tool.ts",
    "go/store/a.go",
    "go/store/b.go",
    "go/main.go",
    "rust/src/net/mod.rs",
    "rust/src/net/tcp.rs",
    "java/com/acme/Shop.java",
    "java/com/acme/Cart.java",
    "c/include/list.h",
    "ruby/lib/shop/cart.rb",
)


@pytest.mark.parametrize(
    ("importer", "module", "name", "level", "found"),
    [
        ("src/pkg/x.py", "pkg.core", "Engine", 0, "src/pkg/core.py"),
        ("vendor/pkg/x.py", "pkg.core", "Engine", 0, "vendor/pkg/core.py"),
        ("src/pkg/x.py", "pkg", "core", 0, "src/pkg/core.py"),
        ("src/pkg/x.py", "", "core", 1, "src/pkg/core.py"),
        ("src/pkg/x.py", "sub.deep", "f", 1, "src/pkg/sub/deep.py"),
        ("src/app.py", "pkg", None, 0, "src/pkg/__init__.py"),
        ("web/app.ts", "./lib", "x", 0, "web/lib/index.ts"),
        ("web/app.ts", "./lib/tool.js", "x", 0, "web/lib/tool.ts"),
        ("go/main.go", "github.com/acme/go/store", None, 0, "go/store/a.go go/store/b.go"),
        ("rust/src/main.rs", "crate::net::tcp", "Stream", 0, "rust/src/net/tcp.rs"),
        ("rust/src/main.rs", "crate::net", "Stream", 0, "rust/src/net/mod.rs"),
        ("java/com/acme/Shop.java", "com.acme", "Cart", 0, "java/com/acme/Cart.java"),
        ("java/org/Main.java", "com.acme", "*", 0, "java/com/acme/Cart.java java/com/acme/Shop.java"),
        ("c/main.c", "list.h", "*", 0, "c/include/list.h"),
        ("ruby/app.rb", "shop/cart", None, 0, "ruby/lib/shop/cart.rb"),
        ("src/pkg/x.py", "numpy.linalg", "norm", 0, ""),
    ],
)
def test_candidates(importer: str, module: str, name: str | None, level: int, found: str) -> None:
    item = Import(importer, module, name, name or "m", level, 0, None, 1)
    got = ImportedPaths(PATHS).candidates(item)
    assert set(found.split()) <= set(got)
    assert bool(got) == bool(found)
    assert len(got) <= 3


# ---------------------------------------------------------------- the working set


def load_from(sources: Mapping[str, SourceFile], seen: list[str] | None = None):  # type: ignore[no-untyped-def]
    def load(paths: Iterable[str]) -> Sequence[FileSyntax]:
        wanted = list(paths)
        if seen is not None:
            seen.extend(wanted)
        return [parse(sources[path]) for path in wanted]

    return load


@dataclass(frozen=True)
class Held:
    """Implements `working_set.Tree`."""

    sources: Mapping[str, SourceFile]

    def text_of(self, path: str) -> bytes:
        return self.sources[path].data

    def size_of(self, path: str) -> int:
        return len(self.sources[path].data)


def crowd(n: int) -> dict[str, str]:
    """Files that have nothing to do with the others, and all define the same names."""
    return {f"crowd/m{i}.py": f"class C{i}:\n    def step(self): return {i}\n\ndef run_{i}(): pass\n" for i in range(n)}


def test_evidence_brings_what_it_imports_and_who_calls_it() -> None:
    sources = files(FILES | crowd(60))
    catalog = catalog_of(sources)
    wanted = Wanted(paths=("tests/test_core.py",), about=("Engine",), text="start fails")
    found = working_set(catalog, wanted, load_from(sources), Held(sources), Size(14, 99_000))
    paths = [file.path for file in found]
    assert paths == sorted(paths)
    assert {"tests/test_core.py", "pkg/core.py", "pkg/util.py", "pkg/deep.py", "pkg/user.py"} <= set(paths)
    assert not any(path.startswith("crowd/") for path in paths)
    again = working_set(catalog, wanted, load_from(dict(reversed(sources.items()))), Held(sources), Size(14, 99_000))
    assert again == found


def test_the_limit_holds_but_for_the_evidence() -> None:
    sources = files(FILES | crowd(60))
    catalog = catalog_of(sources)
    many = Wanted(paths=tuple(f"crowd/m{i}.py" for i in range(12)), text="engine start warm")
    found = working_set(catalog, many, load_from(sources), Held(sources), Size(10, 99_000))
    assert [file.path for file in found] == sorted(many.paths)
    text = Wanted(text="engine start warm ratio run step")
    assert len(working_set(catalog, text, load_from(sources), Held(sources), Size(10, 99_000))) <= 10


def test_the_limit_of_bytes_lets_smaller_files_in() -> None:
    sources = files(FILES | {"pkg/huge.py": "# engine start warm\n" * 3000})
    wanted = Wanted(text="engine start warm")
    found = working_set(catalog_of(sources), wanted, load_from(sources), Held(sources), Size(10, 4000))
    paths = [file.path for file in found]
    assert "pkg/huge.py" not in paths
    assert "pkg/core.py" in paths
    assert sum(len(sources[path].data) for path in paths) <= 4000


def test_names_in_the_evidence_bring_their_definitions() -> None:
    sources = files(FILES | crowd(60))
    found = working_set(
        catalog_of(sources), Wanted(names=("step", "only_here")), load_from(sources), Held(sources), Size(10, 99_000)
    )
    assert [file.path for file in found] == ["pkg/lonely.py"]  # sixty files define `step`: it says nothing


def test_what_a_task_wants() -> None:
    task = Task(request="r", tests=(TestRef("t.py", ("f",)),), focus=(FocusRef("a.py", symbol="C.m"),))
    frames = (Frame("x.py", 1, "outer", True), Frame("lib.py", 1, "no", False), Frame("y.py", 2, "C.inner", True))
    evidence = Evidence(frames=frames, mentions=("name",), error_lines=("boom",), text="log")
    wanted = wanted_of(task, evidence, ["changed.py"])
    assert wanted.paths == ("t.py", "y.py", "x.py", "a.py", "changed.py")
    assert (wanted.names, wanted.about) == (("m", "r", "name"), ("m", "inner", "outer"))
    assert wanted.text == "r\nboom\nlog"


# ---------------------------------------------------------------- the graph of some files


def partial(chosen: Sequence[str], texts: Mapping[str, str] = FILES):  # type: ignore[no-untyped-def]
    sources = files(texts)
    others = {path: file for path, file in sources.items() if path not in chosen}
    return partial_graph([parse(sources[path]) for path in chosen], others, catalog_of(sources))


def states(graph, name: str) -> set[tuple[Resolution, tuple[str, ...]]]:  # type: ignore[no-untyped-def]
    return {(link.state, link.targets) for link in graph.links if link.reference.name == name}


def test_all_files_give_the_whole_graph() -> None:
    sources = files()
    assert partial(list(FILES)) == build_graph([parse(file) for file in sources.values()])


def test_links_inside_are_those_of_the_whole_graph() -> None:
    whole = build_graph([parse(file) for file in files().values()])
    chosen = ["pkg/core.py", "pkg/util.py", "pkg/deep.py", "tests/test_core.py"]
    part = partial(chosen)
    assert set(part.files) == set(chosen)
    assert {symbol.path for symbol in part.symbols.values()} == set(chosen)
    inside = set(part.symbols)
    full = {link.reference: link for link in whole.links}
    assert part.links
    for link in part.links:
        other = full[link.reference]
        assert set(link.targets) == set(other.targets) & inside
        if link.targets:
            assert link == other
        assert link.state is not Resolution.RESOLVED or link.targets


def test_a_name_that_is_defined_elsewhere_is_no_sure_guess() -> None:
    chosen = ["pkg/deep.py", "pkg/other.py"]
    assert states(partial(chosen, {path: FILES[path] for path in chosen}), "ratio") == {
        (Resolution.RESOLVED, ("pkg/other.py::Rate.ratio",))
    }
    assert states(partial(chosen), "ratio") == {(Resolution.AMBIGUOUS, ("pkg/other.py::Rate.ratio",))}


def test_what_is_only_elsewhere_is_unknown_and_not_external() -> None:
    part = partial(["pkg/core.py", "pkg/user.py"])
    assert states(part, "only_here") == {(Resolution.UNKNOWN, ())}
    assert states(part, "warm") == {(Resolution.UNKNOWN, ())}
    assert all(state is not Resolution.EXTERNAL for state, _ in states(part, "Engine"))


OTHER_LANGUAGES = {
    "go.mod": "module example.org/m\n",
    "a/a.go": "package a\n\nfunc Run() { Help() }\n",
    "a/b.go": "package a\n\nfunc Help() {}\n",
    "main.go": 'package main\n\nimport "example.org/m/a"\n\nfunc main() { a.Run() }\n',
    "js/x.js": "import { f } from './y';\nf();\n",
    "js/y.js": "export function f() {}\n",
    "J/A.java": "package J;\nclass A { void go() { new B().help(); } }\n",
    "J/B.java": "package J;\nclass B { void help() {} }\n",
}


@pytest.mark.parametrize("chosen", ["main.go", "a/a.go", "js/x.js", "J/A.java", "J/A.java a/a.go js/x.js"])
def test_other_languages_never_look_surer_either(chosen: str) -> None:
    sources = files(OTHER_LANGUAGES)
    configs = {"go.mod": sources["go.mod"].data}
    whole = build_graph([parse(file) for file in sources.values()], configs)
    others = {path: file for path, file in sources.items() if path not in chosen.split()}
    part = partial_graph([parse(sources[path]) for path in chosen.split()], others, catalog_of(sources), configs)
    full = {link.reference: link for link in whole.links}
    for link in part.links:
        other = full[link.reference]
        assert set(link.targets) <= set(other.targets)
        if other.targets and not link.targets:
            assert link.state is Resolution.UNKNOWN, link


# ---------------------------------------------------------------- the pipeline


def test_a_large_repository_is_ranked_in_part_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_index, "WHOLE", Size(900, 12_000_000))
    for path, text in (FILES | crowd(900)).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    task = Task(request="Engine.start is wrong", tests=(TestRef("tests/test_core.py", ("test_start",)),))
    done = run("select", tmp_path, task, RunOptions(budget=2000), PlainServices())
    graph = done.understood.index.graph
    assert len(graph.files) < 820
    assert {"pkg/core.py", "pkg/user.py", "tests/test_core.py"} <= set(graph.files)
    (note,) = [one.message for one in done.report.findings if one.message.startswith("ranked ")]
    assert note.startswith(f"ranked {len(graph.files)} of 910 files: ")
    again = run("select", tmp_path, task, RunOptions(budget=2000), PlainServices())
    assert again.report.units == done.report.units


def test_a_small_repository_is_whole(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    clock, services = Clock(), PlainServices()
    tree = pipeline_index.read_tree(tmp_path, services, clock)
    index = pipeline_index.link(tree, services, clock, Wanted())
    assert (list(index.graph.files), index.notes) == (["a.py"], ())
