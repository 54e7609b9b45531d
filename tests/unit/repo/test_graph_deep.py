"""Chains of imports, values and types of any length are followed only so far: no recursion over a file's size."""

from __future__ import annotations

import pytest

from agentctx.source import Resolution, Role
from tests.unit.repo.test_graph_languages import graph_of

N = 700
CASES = {
    "values": {"a.js": "const a0 = f();\n" + "".join(f"const a{i} = a{i - 1};\n" for i in range(1, N)) + "a699.x()\n"},
    "returns": {
        "a.js": "function a0() {}\n"
        + "".join(f"function a{i}() {{ return a{i - 1}() }}\n" for i in range(1, N))
        + "a699().x()\n"
    },
    "re-exports": {f"m{i}.ts": f"export {{ x }} from './m{i + 1}'\n" for i in range(N)}
    | {f"m{N}.ts": "export let x = 1\n"},
    "stars in a circle": {
        f"m{i}.ts": f"export * from './m{(i + 1) % 60}'\nexport {{ y as z{i} }} from './m{(i + 7) % 60}'\n"
        for i in range(60)
    },
    "aliases": {
        "a.ts": "".join(f"type T{i} = T{i + 1} & {{ a{i}: number }};\n" for i in range(N))
        + "function g(x: T0) { x.a0; x.a699 }\n"
    },
    "bases": {"a.ts": "".join(f"class A{i} extends A{i + 1} {{}}\n" for i in range(N)) + "new A0().run()\n"},
    "members": {"a.js": "a" + ".b()" * N},
    "types in types": {"a.ts": "type A = " + "{a: " * N + "1" + "}" * N},
    "conditions": {"a.ts": "type A<T> = " + "T extends infer U ? " * N + "1" + " : 2" * N},
}


@pytest.mark.parametrize("name", CASES)
def test_any_length_is_read(name: str) -> None:
    graph = graph_of(CASES[name])
    assert set(graph.files) == set(CASES[name])


def test_what_is_near_is_found_in_a_long_chain() -> None:
    graph = graph_of(CASES["re-exports"])
    last = [link for link in graph.links if link.reference.path == f"m{N - 20}.ts"]
    assert [(link.state, link.targets) for link in last] == [(Resolution.RESOLVED, (f"m{N}.ts::x",))]
    graph = graph_of(CASES["aliases"])
    found = {link.reference.name: link.targets for link in graph.links if link.reference.role is Role.ATTRIBUTE}
    assert found["a0"] == ("a.ts::T0.a0",)
