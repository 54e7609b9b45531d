"""What must hold of every log format: no line of another tool's log is taken, no text makes one raise."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from agentctx.repo.logs.callstacks import dotnet_frame, jvm_frame, native_frame, php_frame, ruby_frame
from agentctx.repo.logs.feeding import Feeder
from agentctx.repo.logs.formats import FORMATS
from agentctx.repo.logs.formats_others import OTHERS
from agentctx.repo.logs.found import Found, MakeFormat, RawFrame
from agentctx.repo.logs.junit_xml import JUnitXmlFormat
from agentctx.repo.logs.phpunit import TeamcityFormat
from agentctx.repo.logs.reader import read_logs
from tests.casefile import case_paths, read_case

SCRIPT_LOGS = [(p.stem, log) for p in case_paths("logs") for log in read_case(p).files.values()]
OTHER_LOGS = [(p.stem, log) for p in case_paths("logs_others") for log in read_case(p).files.values()]
# Formats of what more than one tool writes, and a case of another language that is written so.
SHARED = {
    JUnitXmlFormat: ("xml", "junit"),
    TeamcityFormat: ("teamcity",),
}


def found_in(makes: Sequence[MakeFormat], log: str) -> list[Found]:
    feeder = Feeder(makes)
    text = log.rstrip("\n")
    feeder.feed(range(text.count("\n") + 1), text)
    return feeder.finish()


@pytest.mark.parametrize(("name", "log"), SCRIPT_LOGS, ids=[name for name, _ in SCRIPT_LOGS])
def test_logs_of_python_and_javascript_say_nothing_to_other_formats(name: str, log: str) -> None:
    taken = {
        make.__name__: (found.tests, found.traces, list(found.errors))
        for make, found in zip(OTHERS, found_in(OTHERS, log), strict=True)
        if found and not any(word in name for word in SHARED.get(make, ()))
    }
    assert taken == {}


def mutations(log: str, rng: random.Random, n: int) -> list[str]:
    """Lines dropped, doubled, moved, cut and mixed with those of other logs."""
    out = []
    for _ in range(n):
        lines = log.split("\n")
        for _ in range(rng.randint(1, 6)):
            i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
            kind = rng.randrange(6)
            if kind == 0:
                del lines[i : i + rng.randint(1, 5)]
            elif kind == 1:
                lines.insert(j, lines[i])
            elif kind == 2:
                lines[i] = lines[i][: rng.randint(0, len(lines[i]))]
            elif kind == 3:
                lines[i], lines[j] = lines[j], lines[i]
            elif kind == 4:
                lines[i] = lines[i][rng.randint(0, len(lines[i])) :] + rng.choice(
                    ["(", "[", "'", '"', ":1:", "\u2028", "\\"]
                )
            else:
                lines[i:i] = rng.choice(OTHER_LOGS)[1].split("\n")[j : j + 5]
            lines = lines or [""]
        out.append("\n".join(lines))
    return out


@pytest.mark.parametrize(("name", "log"), OTHER_LOGS, ids=[name for name, _ in OTHER_LOGS])
def test_never_raises_on_mutated_logs(name: str, log: str) -> None:
    rng = random.Random(name)
    for text in mutations(log, rng, 12):
        for found in found_in(OTHERS, text):
            assert all(trace.frames and all(frame.line > 0 for frame in trace.frames) for trace in found.traces)
            assert all(block.end >= block.at for block in found.blocks)
            assert all(test.path or test.names for test in found.tests)


@pytest.mark.parametrize(("name", "log"), OTHER_LOGS, ids=[name for name, _ in OTHER_LOGS])
def test_a_log_cut_at_any_place_names_no_other_tests(name: str, log: str) -> None:
    """What the log's head or tail tells is part of what the whole tells."""
    lines = log.rstrip("\n").split("\n")
    whole = {test.names[-1] for found in found_in(OTHERS, log) for test in found.tests if test.names}
    for cut in range(1, len(lines), max(1, len(lines) // 8)):
        head = {
            test.names[-1] for found in found_in(OTHERS, "\n".join(lines[:cut])) for test in found.tests if test.names
        }
        # A parent is told by its subtests, and a retried test passes, only after the cut.
        assert {
            name for name in head - whole if not name.startswith(("Test", "Fuzz", "connects", "sometimes"))
        } == set()


def test_formats_are_idle_in_the_end() -> None:
    """A format that stays busy would see all lines of a huge log."""
    noise = [f"2024-05-01 INFO handled request {i} in 3.4 ms: ok" for i in range(6_000)]
    for _, log in OTHER_LOGS:
        parsers = [make() for make in OTHERS]
        lines = log.split("\n")
        for parser in parsers:
            for at, line in enumerate([*lines, *noise]):
                if at >= len(lines) and not parser.busy:
                    break
                parser.feed(at, line)
        assert [type(parser).__name__ for parser in parsers if parser.busy] == []


def test_order_of_formats_decides_nothing() -> None:
    for _, log in OTHER_LOGS[::7]:
        one = found_in(FORMATS, log)
        other = found_in(FORMATS[::-1], log)[::-1]
        assert [(f.tests, f.traces, f.errors, f.blocks) for f in one] == [
            (f.tests, f.traces, f.errors, f.blocks) for f in other
        ]


def test_a_report_in_one_line_of_megabytes_is_read() -> None:
    case = (
        '<testcase classname="tests.test_a.TestA" name="test_%d">'
        '<failure message="assert %d">E  x\ntests/test_a.py:%d: E</failure></testcase>'
    )
    report = "<?xml version='1.0'?><testsuites><testsuite name='pytest'>" + "".join(
        '<testcase classname="tests.test_a" name="fine"/>' * 50 + case % (i, i, i) for i in range(900)
    )
    evidence = read_logs([("report.xml", f"{report}</testsuite></testsuites>".encode())], ["tests/test_a.py"])
    assert len(report) > 2 << 20
    assert [test.id for test in evidence.failing] == [f"tests/test_a.py::TestA::test_{i}" for i in range(900)]


def test_entities_are_not_expanded() -> None:
    bomb = "<!DOCTYPE a [<!ENTITY b 'bbbb'><!ENTITY c '&b;&b;&b;&b;'><!ENTITY f SYSTEM 'file:///etc/passwd'>]>"
    case = '<testcase name="&c;" file="a.js"><failure>&f; &#65;&lt;</failure></testcase>'
    report = f'{bomb}\n<testsuite name="x">{case}</testsuite>'
    evidence = read_logs([("report.xml", report.encode())], ["a.js"])
    assert [test.id for test in evidence.failing] == ["a.js::&c;"]
    assert evidence.error_lines == ("&f; A<",)


@pytest.mark.parametrize(
    ("line", "path", "number", "function"),
    [
        ("\tat com.x.Foo.lambda$total$0(Foo.java:19)", "com/x/Foo.java", 19, "total"),
        ("\tat app//com.x.FooTest.two digits(FooTest.kt:3) ~[na:na]", "com/x/FooTest.kt", 3, "two digits"),
        ("\tat com.x.MainKt$main$1.invoke(Main.kt:8)", "com/x/Main.kt", 8, "main"),
        ("\tat com.x.Cart$$anonfun$total$1.apply(Main.scala:4)", "com/x/Main.scala", 4, "total"),
        ("\tat Main.main(Main.java:1)", "Main.java", 1, "main"),
        ("   at Shop.CartTest.<Adds>d__3.MoveNext() in C:\\work\\x.cs:line 12", "C:\\work\\x.cs", 12, "Adds"),
        ("   at Shop.Cart`1.Add[T](Func`2 f, T x) in /home/u/x.cs:line 3", "/home/u/x.cs", 3, "Add"),
        ("\tfrom main.rb:3:in `load'", "main.rb", 3, "load"),
        ("     # ./lib/a.rb:7:in 'block (2 levels) in Cart#first'", "./lib/a.rb", 7, "first"),
        ("#1 /p/main.php(7): Shop\\Cart->load('0')", "/p/main.php", 7, "load"),
        ("    #1 0x7f3a in ns::Foo<int>::bar(int, char) /x/y.cpp:12:3 (BuildId: abc)", "/x/y.cpp", 12, "bar"),
        ("#6  0x7f3a in cart_at (cart=0x7f3a, i=-1) at src/cart.c:14", "src/cart.c", 14, "cart_at"),
        ("frame #1: 0x0000 app`main(argc=1) at main.c:3:4", "main.c", 3, "main"),
        ("    at Object.foo (/a/b.js:3:4)", None, 0, None),
        ("#3 fixed a bug (again)", None, 0, None),
        ("at home (see Foo.java)", None, 0, None),
        ("# FAIL src/x.rb:3", None, 0, None),
    ],
)
def test_frames_of_one_line(line: str, path: str | None, number: int, function: str | None) -> None:
    found = [frame for read in (jvm_frame, dotnet_frame, ruby_frame, php_frame, native_frame) if (frame := read(line))]
    assert found == ([RawFrame(path, number, function)] if path else [])
