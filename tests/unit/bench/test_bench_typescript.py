"""References of JavaScript and TypeScript beside tsserver: its protocol, where it stops, what is alike."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from agentctx.bench.oracles.oracle import Answer, Place, Position
from agentctx.bench.oracles.tsserver import PROGRAM, Program, TsServerOracle, tsserver
from agentctx.bench.resolve.import_places import IMPORT_PLACES
from agentctx.bench.resolve.measure import compare, sources
from agentctx.cli.main import main
from agentctx.errors import UnavailableError
from agentctx.repo.languages import language_of
from agentctx.repo.parse import parse
from agentctx.source import SourceFile

FILES = {
    "lib/app.js": "exports.f = function g() {}\nfunction h() {}\nmodule.exports.h = h\n",
    "lib/whole.js": "// a comment\nmodule.exports = { run: () => 1 }\n",
    "a.js": (
        "const app = require('./lib/app')\nconst { h } = require('./lib/app')\n"
        "const whole = require('./lib/whole')\napp.f()\nh()\nwhole.run()\n"
    ),
    "b.ts": "export class C { constructor() {}\n  open = () => 1 }\nexport const made = new C();\nmade.open();\n",
}


def files(texts: Mapping[str, str] = FILES) -> list[SourceFile]:
    return [SourceFile(path, text.encode(), path, language_of(path)) for path, text in sorted(texts.items())]


class Table:
    """An oracle that knows some answers by the place of the question."""

    name = "table 1"

    def __init__(self, answers: Mapping[tuple[str, int, int], Answer]) -> None:
        self._answers = answers

    def definitions(self, path: str, positions: Sequence[Position]) -> list[Answer]:
        return [self._answers.get((path, at.line, at.column), ()) for at in positions]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (("a.js", 0, 20), ("lib/app.js", 0, 0)),  # a module is its first statement
        (("a.js", 2, 22), ("lib/whole.js", 1, 0)),  # ... or what it hands out as a whole
        (("a.js", 3, 4), ("lib/app.js", 0, 8)),
        (("a.js", 3, 4), ("lib/app.js", 0, 21)),  # the function expression's own name
        (("a.js", 4, 0), ("lib/app.js", 1, 9)),
        (("a.js", 5, 6), ("lib/whole.js", 1, 24)),  # an arrow function is what it is given to
        (("b.ts", 2, 24), ("b.ts", 0, 17)),  # a constructor and its class
        (("b.ts", 3, 5), ("b.ts", 1, 9)),
    ],
)
def test_what_stands_for_a_declaration(question: tuple[str, int, int], answer: tuple[str, int, int]) -> None:
    found = compare(files(), Table({question: (Place(*answer),)}))
    assert [(row.total, row.agreed) for row in found.rows if row.kind == "all"] == [(1, 1)]


@pytest.mark.parametrize("answer", [("lib/app.js", 1, 9), ("lib/app.js", 2, 0), ("b.ts", 0, 13)])
def test_another_declaration_is_wrong(answer: tuple[str, int, int]) -> None:
    found = compare(files(), Table({("a.js", 3, 4): (Place(*answer),)}))
    assert (found.rows[-1].agreed, found.rows[-1].wrong) == (0, 1)


def test_where_the_oracle_stops_at_an_import_what_it_says_of_the_import_counts() -> None:
    stops = {("a.js", 4, 0): (Place("a.js", 1, 8),)}
    assert compare(files(), Table(stops)).rows[-1].agreed == 0
    behind = {**stops, ("a.js", 1, 8): (Place("lib/app.js", 1, 9),)}
    assert compare(files(), Table(behind)).rows[-1].agreed == 2


def test_a_declaration_file_and_the_code_are_one() -> None:
    texts = {
        "x.js": "export function f() {}\n",
        "x.d.ts": "export declare function f(): void;\n",
        "use.ts": "import { f } from './x.js';\nf();\n",
    }
    for place in (Place("x.js", 0, 16), Place("x.d.ts", 0, 24)):
        found = compare(files(texts), Table({("use.ts", 1, 0): (place,)}))
        assert found.rows[-1].agreed == 1


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import a, { b as c, d } from './m'\n", ["a", "b", "d"]),
        ("import * as ns from './m'\nimport './n'\n", ["'./m'", "'./n'"]),
        ("export { a as b } from './m'\nexport * from './n'\n", ["a", "'./n'"]),
        ("const a = require('./m'), { b, c: d } = require('./n')\n", ["'./m'", "b", "c"]),
        ("use(require('./m'))\nconst x = require('./n').y\n", ["'./m'", "y"]),
        ("const a = await import('./m')\nimport('./n').then(f)\n", ["'./m'", "'./n'"]),
        ("import x = require('./m')\n", ["'./m'"]),
    ],
)
def test_places_of_imported_names(text: str, names: list[str]) -> None:
    data = text.encode()
    syntax = parse(SourceFile("m.ts", data, "m", "typescript"))
    found = IMPORT_PLACES["typescript"](syntax, data)
    assert [data[at or 0 :].decode()[: len(name)] for at, name in zip(found, names, strict=True)] == names


SERVER = """
import json, sys
ANSWERS = json.loads(sys.argv[1])
for line in sys.stdin:
    asked = json.loads(line)
    command, arguments = asked["command"], asked["arguments"]
    if command in ("open", "close"):
        continue
    if command == "definition-full" and arguments["line"] == 9:
        body = {"success": False}
    else:
        key = f"{command} {arguments.get('line')}:{arguments.get('offset')}"
        body = {"success": True, "body": ANSWERS.get(key, [])}
    text = json.dumps({"seq": 0, "type": "response", "request_seq": asked["seq"], "command": command, **body})
    event = json.dumps({"seq": 0, "type": "event", "event": "x"})
    for one in (event, text):
        print(f"Content-Length: {len(one) + 1}\\r\\n\\r\\n{one}", flush=True)
"""


def test_the_protocol(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text(
        "let é = '😀'; const x = 1\nexports.x = x\nmodule.exports = require('./b')\n", "utf-8"
    )
    (tmp_path / "b.d.ts").write_text("declare const b: 1\n", "utf-8")
    here, there = str(tmp_path / "a.js"), str(tmp_path / "b.d.ts")

    def full(name: str, start: int, kind: str = "const", *, failed: bool = False) -> dict[str, object]:
        return {"fileName": name, "textSpan": {"start": start}, "kind": kind, "failedAliasResolution": failed}

    def plain(name: str, line: int, offset: int) -> dict[str, object]:
        return {"file": name, "start": {"line": line, "offset": offset}}

    answers = {
        "definition-full 1:1": [full(here, 20), full("/elsewhere/lib.d.ts", 5)],
        "definition-full 1:2": [full(here, 26)],  # `exports.x = x`: it goes on to the `x`
        "definition-full 2:13": [full(here, 20)],
        "definition-full 1:3": [full(here, 40)],  # `module.exports = require()`: by its type
        "typeDefinition 3:1": [plain(there, 1, 15)],
        "definition-full 1:4": [full(there, 14)],  # declared there, written elsewhere
        "findSourceDefinition 1:4": [plain(here, 1, 21)],
        "definition-full 1:5": [full(here, 0, failed=True), full(here, 0, "alias")],  # imports of nothing
    }
    program = Program("fake 1", (sys.executable, "-c", SERVER, json.dumps(answers)))
    with TsServerOracle(program, tmp_path, ["a.js", "b.d.ts"], {}) as oracle:
        found = oracle.definitions("a.js", [Position(0, column) for column in range(5)] + [Position(8, 0)])
        failures = oracle.failures
    x, b = Place("a.js", 0, 20), Place("b.d.ts", 0, 14)
    assert found == [(Place(None, 0, 0), x), (x, Place("a.js", 1, 0)), (Place("a.js", 2, 0), b), (x, b), (), ()]
    assert failures == 1


def test_a_server_that_is_not_there_or_ends(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="there is no tsserver") as error:
        tsserver(tmp_path)
    assert "npm install" in (error.value.hint or "")
    with pytest.raises(UnavailableError, match="can't start"):
        TsServerOracle(Program("x", (str(tmp_path / "nowhere"),)), tmp_path, [], {})
    with (
        pytest.raises(UnavailableError, match="x ended"),
        TsServerOracle(Program("x", ("sh", "-c", "exit 0")), tmp_path, [], {}),
    ):
        pass


def test_the_command_names_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "a.ts").write_text("export const a = 1;\n", "utf-8")
    options = ["bench", "resolve", "--language", "typescript", "--repo", str(tmp_path), "--server", str(tmp_path)]
    result = CliRunner().invoke(main, options)
    assert isinstance(result.exception, UnavailableError)
    assert result.exception.exit_code == 4
    mixed = CliRunner().invoke(main, [*options, "--oracle", "pyright"])
    assert "pyright knows no typescript" in str(mixed.exception)


@pytest.mark.skipif(shutil.which(PROGRAM) is None, reason=f"there is no {PROGRAM}")
def test_the_real_server(tmp_path: Path) -> None:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")
    found = sources(tmp_path, "typescript", ["lib"])
    assert [file.path for file in found] == ["a.js", "b.ts"]
    found = sources(tmp_path, "typescript")
    with TsServerOracle(tsserver(None), tmp_path, [file.path for file in found], {}) as oracle:
        compared = compare(found, oracle)
    assert compared.rows[-1].agreed == compared.rows[-1].total > 10
