# ruff: noqa: E501 - answers are easier to read on one line
"""Answers of models -> patches -> bytes."""

from __future__ import annotations

import pytest

from agentctx.edit.apply import apply_edit, new_contents
from agentctx.edit.formats import edit_format, parse_answer
from agentctx.edit.instructions import answer_prefix, instructions, stop_strings, without_stop
from agentctx.edit.target import EditTarget, make_target
from agentctx.errors import EditError, EditFormatError, UsageError
from agentctx.spans import ByteSpan

CODE = b"""\
import os


def add(a, b):
    \"\"\"Add.\"\"\"
    return a - b


class Box:
    @property
    def size(self):
        total = 0
        for x in self.items:
            total += x
        return total

    def scale(self, by):
        return by


def last():
    return 1
"""


def reader(files: dict[str, bytes]):
    def read(path: str) -> bytes:
        if path not in files:
            raise FileNotFoundError(path)
        return files[path]

    return read


def target_of(source: bytes, text: bytes, qualname: str, path: str = "m.py") -> EditTarget:
    start = source.index(text)
    return make_target(path, source, ByteSpan(start, start + len(text)), qualname)


def edited(form: str, answer: str, source: bytes = CODE, target: EditTarget | None = None, path: str = "m.py"):
    read = reader({path: source})
    patch = parse_answer(answer, edit_format(form), target, read)
    return new_contents(patch, read)[path], patch.notes


def block(search: str, replace: str, path: str = "m.py") -> str:
    return f"{path}\n<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n"


# ---------------------------------------------------------------- search-replace


@pytest.mark.parametrize(
    "opening",
    [
        "m.py\n",
        "`m.py`\n",
        "# m.py\n",
        "**m.py**\n",
        "File: m.py\n",
        "### `m.py`:\n",
        "m.py\n```python\n",
        "```python m.py\n",
        "```python\n# m.py\n",
        "",  # the target's path
    ],
)
def test_path_line_in_every_dress(opening: str) -> None:
    answer = f"Here:\n\n{opening}<<<<<<< SEARCH\n    return a - b\n=======\n    return a + b\n>>>>>>> REPLACE\n```\n"
    new, notes = edited("search-replace", answer, target=_add())
    assert new == CODE.replace(b"a - b", b"a + b")
    assert notes == ()


def _add() -> EditTarget:
    return target_of(CODE, b'def add(a, b):\n    """Add."""\n    return a - b', "add")


def test_shifted_block_is_reindented_and_reported() -> None:
    search = "total = 0\nfor x in self.items:\n    total += x\n"
    replace = "total = 1\nfor x in self.items:\n    total += x\n    total += 1\n"
    new, notes = edited("search-replace", block(search, replace))
    assert new == CODE.replace(b"total = 0", b"total = 1").replace(
        b"            total += x\n", b"            total += x\n            total += 1\n"
    )
    assert notes == ("m.py:12: matched up to indentation",)


def test_over_indented_block_is_shifted_back() -> None:
    new, notes = edited("search-replace", block("        return a - b\n", "        c = a + b\n        return c\n"))
    assert new == CODE.replace(b"    return a - b", b"    c = a + b\n    return c")
    assert "indentation" in notes[0]


def test_trailing_whitespace_is_tolerated_and_the_files_own_lines_stay() -> None:
    source = b"def f():  \n    x = 1\n    return x\n"
    new, notes = edited("search-replace", block("def f():\n    x = 1\n", "def f():\n    x = 2\n"), source)
    assert new == b"def f():  \n    x = 2\n    return x\n"
    assert notes == ("m.py:1: matched up to whitespace at line ends",)


def test_not_uniformly_shifted_is_no_match() -> None:
    with pytest.raises(EditFormatError, match="match nowhere"):
        edited("search-replace", block("total = 0\n  for x in self.items:\n", "pass\n"))


def test_no_match_names_the_closest_lines() -> None:
    with pytest.raises(EditFormatError) as caught:
        edited("search-replace", block('    """Add."""\n    return a * b\n', "    return a + b\n"))
    assert '5:     """Add."""' in caught.value.message
    assert "6:     return a - b" in caught.value.message


def test_two_matches_name_both_places() -> None:
    source = b"a = 1\nb = 2\na = 1\n"
    with pytest.raises(EditFormatError, match=r"m\.py:1 and m\.py:3"):
        edited("search-replace", block("a = 1\n", "a = 3\n"), source)


def test_two_tolerant_matches_are_an_error_too() -> None:
    source = b"if x:\n    a = 1\nelse:\n  a = 1\n"
    with pytest.raises(EditFormatError, match=r"m\.py:2 and m\.py:4"):
        edited("search-replace", block("a = 1\n", "a = 3\n"), source)


def test_an_exact_match_beats_a_tolerant_one() -> None:
    source = b"if x:\n    a = 1\na = 1\n"
    new, notes = edited("search-replace", block("a = 1\n", "a = 3\n"), source)
    assert new == b"if x:\n    a = 1\na = 3\n"
    assert notes == ()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (b"a = 1\r\nb = 2\r\n", b"a = 1\r\nb = 3\r\nc = 4\r\n"),
        (b"\xef\xbb\xbfa = 1\nb = 2\n", b"\xef\xbb\xbfa = 1\nb = 3\nc = 4\n"),
        (b"a = 1\nb = 2", b"a = 1\nb = 3\nc = 4"),
        (b"# coding: latin-1\n# \xe9\nb = 2\n", b"# coding: latin-1\n# \xe9\nb = 3\nc = 4\n"),
        (b"a = 1\rb = 2\r", b"a = 1\rb = 3\rc = 4\r"),
    ],
    ids=["crlf", "bom", "no-final-newline", "latin-1", "cr"],
)
def test_bytes_around_the_edit_stay(source: bytes, expected: bytes) -> None:
    assert edited("search-replace", block("b = 2\n", "b = 3\nc = 4\n"), source)[0] == expected


def test_bom_file_first_line_can_be_edited() -> None:
    assert (
        edited("search-replace", block("a = 1\n", "a = 2\n"), b"\xef\xbb\xbfa = 1\r\n")[0] == b"\xef\xbb\xbfa = 2\r\n"
    )


@pytest.mark.parametrize(
    ("search", "replace", "expected"),
    [("b = 2\n", "", b"a = 1"), ("a = 1\nb = 2\n", "", b""), ("a = 1\n", "", b"b = 2")],
)
def test_deleting_lines_of_a_file_without_final_newline(search: str, replace: str, expected: bytes) -> None:
    assert edited("search-replace", block(search, replace), b"a = 1\nb = 2")[0] == expected


def test_a_character_that_the_encoding_lacks_is_an_error() -> None:
    source = b"# coding: latin-1\nx = '\xe9'\n"
    with pytest.raises(EditFormatError, match="latin-1 and can't hold '→'"):
        edited("search-replace", block("x = 'é'\n", "x = '→'\n"), source)


def test_text_with_divider_lines_in_it() -> None:
    source = b"Title\n=======\n\nold\n"
    answer = block("Title\n=======\n\nold\n", "Title\n=======\n\nnew\n", "a.rst")
    assert edited("search-replace", answer, source, path="a.rst")[0] == b"Title\n=======\n\nnew\n"


def test_several_files_and_a_new_one() -> None:
    files = {"a.py": b"a = 1\n", "b/c.py": b"c = 1\n"}
    answer = block("a = 1\n", "a = 2\n", "a.py") + block("c = 1\n", "c = 2\n", "b/c.py") + block("", "d = 4\n", "d.py")
    patch = parse_answer(answer, edit_format("search-replace"), None, reader(files))
    assert [(edit.path, bool(edit.base_digest)) for edit in patch.files] == [
        ("a.py", True),
        ("b/c.py", True),
        ("d.py", False),
    ]
    assert new_contents(patch, lambda path: files.get(path)) == {
        "a.py": b"a = 2\n",
        "b/c.py": b"c = 2\n",
        "d.py": b"d = 4\n",
    }


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("I would change it.", "no SEARCH/REPLACE block"),
        ("m.py\n<<<<<<< SEARCH\nx\n>>>>>>> REPLACE\n", "no ======= line"),
        ("m.py\n<<<<<<< SEARCH\nx\n=======\ny\n", "no >>>>>>> REPLACE"),
        ("nope.py\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n", "there is no file 'nope.py'"),
        (block("", "x = 1\n"), "m.py exists"),
        (block("    return 1\n", "    return 1\n"), "changes nothing"),
        (block("    return a - b\n", "    return (a + b\n"), "m.py would not compile: line"),
        (block("    return 1\n", "    # ... rest of the function ...\n    return 2\n"), "leaves code out"),
        (block("def last():\n    return 1\n", "x\n") + block("    return 1\n", "y\n"), "two blocks change the same"),
    ],
)
def test_bad_search_replace_answers(answer: str, message: str) -> None:
    with pytest.raises(EditFormatError, match=message):
        edited("search-replace", answer)


def test_binary_files_are_refused() -> None:
    with pytest.raises(EditFormatError, match="binary"):
        edited("search-replace", block("a\n", "b\n", "x.bin"), b"a\n\0", path="x.bin")


# ---------------------------------------------------------------- function

METHOD = b"@property\n    def size(self):\n        total = 0\n        for x in self.items:\n            total += x\n        return total"
NEW_SIZE = CODE.replace(b"total = 0", b"total = 1")


@pytest.mark.parametrize(
    "answer",
    [
        "```python\ndef size(self):\n    total = 1\n    for x in self.items:\n        total += x\n    return total\n```",
        "    def size(self):\n        total = 1\n        for x in self.items:\n            total += x\n        return total\n",
        "Sure!\n\n```py\n@property\ndef size(self):\n  total = 1\n  for x in self.items:\n      total += x\n  return total\n```\nDone.",
        "```python\nclass Box:\n    def size(self):\n        total = 1\n        for x in self.items:\n            total += x\n        return total\n```",
        "\n        total = 1\n        for x in self.items:\n            total += x\n        return total",
        "\n        total = 1\n        for x in self.items:\n            total += x\n        return total\n```\nI changed it.",
        "        total = 1\n        for x in self.items:\n            total += x\n        return total\n",
        "def size(self):\n\ttotal = 1\n\tfor x in self.items:\n\t\ttotal += x\n\treturn total\n\nThis works since.",
    ],
    ids=["fenced", "raw-indented", "two-spaces", "in-class", "continued", "continued-fence", "body-only", "tabs"],
)
def test_function_answers(answer: str) -> None:
    new, _ = edited("function", answer, target=target_of(CODE, METHOD, "Box.size"))
    assert new == NEW_SIZE


def test_the_prefix_is_the_fence_and_the_whole_signature() -> None:
    source = b"class A:\n    @dec(1)\n    def f(self, a: dict[str, int] = {1: 2},\n          b=lambda: 0) -> int:  # why\n        return 1\n"
    start = source.index(b"@dec")
    target = make_target("a.py", source, ByteSpan(start, len(source) - 1), "A.f")
    assert answer_prefix("function", target) == (
        "```python\n    def f(self, a: dict[str, int] = {1: 2},\n          b=lambda: 0) -> int:"
    )
    new, _ = edited("function", "\n        return 2\n", source, target, "a.py")
    assert new == source.replace(b"return 1", b"return 2")


def test_function_takes_the_target_among_several_and_says_what_it_left() -> None:
    answer = "```python\ndef helper():\n    pass\n\ndef add(a, b):\n    return a + b\n\ndef main():\n    pass\n```"
    new, notes = edited("function", answer, target=_add())
    assert new == CODE.replace(b'    """Add."""\n    return a - b', b"    return a + b")
    assert notes == ("left out of the answer: helper, main (only add is replaced)",)


def test_other_members_of_the_answers_class_are_named() -> None:
    answer = "class Box:\n    def size(self):\n        return 1\n\n    def scale(self, by):\n        return 2 * by\n"
    new, notes = edited("function", answer, target=target_of(CODE, METHOD, "Box.size"))
    assert b"2 * by" not in new
    assert notes == ("left out of the answer: Box.scale (only Box.size is replaced)",)


def test_decorators_of_the_answer_replace_those_of_the_target() -> None:
    answer = "@cached\ndef size(self):\n    return 1\n"
    new, _ = edited("function", answer, target=target_of(CODE, METHOD, "Box.size"))
    assert b"    @cached\n    def size(self):\n        return 1\n\n    def scale" in new
    assert b"@property" not in new


def test_safe_imports_are_added_and_the_others_named() -> None:
    answer = (
        "import math\nimport os\nimport numpy as np\nfrom json import loads\nfrom . import x\n\n"
        "def add(a, b):\n    return math.floor(np.add(a, b)) + x\n"
    )
    new, notes = edited("function", answer, target=_add())
    assert new.startswith(b"import os\nimport math\n\n\ndef add(a, b):\n    return math.floor")
    assert notes == (
        "added to m.py: import math",
        "not added to m.py: import numpy as np (neither the standard library nor a package that the file imports"
        " holds numpy)",
        "not added to m.py: from json import loads (the new code doesn't use it)",
        "not added to m.py: from . import x (it is relative)",
    )


def test_an_import_never_rebinds_a_name_of_the_file() -> None:
    source = b'"""Doc."""\nfrom __future__ import annotations\n\nmath = 3\n\n\ndef f():\n    return 1\n'
    target = target_of(source, b"def f():\n    return 1", "f")
    new, notes = edited("function", "import math\nimport re\ndef f():\n    return re, math\n", source, target)
    assert new == source.replace(b"return 1", b"return re, math").replace(b"annotations\n", b"annotations\nimport re\n")
    assert "the file binds math already" in notes[0]


def test_strings_keep_their_inside_and_docstrings_move() -> None:
    source = b'class A:\n    def f(self):\n        q = """\nSELECT 1\n  FROM t\n"""\n        return q\n'
    target = target_of(source, source[source.index(b"def f") : -1], "A.f")
    answer = '```python\ndef f(self):\n    """Doc.\n\n    More.\n    """\n    q = """\nSELECT 2\n  FROM t\n"""\n    return q\n```'
    new, _ = edited("function", answer, source, target)
    assert new == (
        b'class A:\n    def f(self):\n        """Doc.\n\n        More.\n        """\n'
        b'        q = """\nSELECT 2\n  FROM t\n"""\n        return q\n'
    )


def test_tabs_and_crlf_of_the_file() -> None:
    source = b"class A:\r\n\tdef f(self, x):\r\n\t\tif x:\r\n\t\t\treturn 1\r\n\t\treturn 2\r\n"
    target = target_of(source, source[source.index(b"def f") : -2], "A.f")
    answer = "```python\ndef f(self, x):\n    if x:\n        return 3\n    return 2\n```"
    assert edited("function", answer, source, target)[0] == source.replace(b"return 1", b"return 3")


def test_one_liner_and_no_final_newline() -> None:
    source = b"x = 1\ndef f(): return 1"
    target = target_of(source, b"def f(): return 1", "f")
    assert edited("function", "def f():\n    return 2\n", source, target)[0] == b"x = 1\ndef f():\n    return 2"


def test_class_target() -> None:
    source = b"class A:\n    x = 1\n\n\nclass B:\n    pass\n"
    target = target_of(source, b"class A:\n    x = 1", "A")
    assert edited("function", "class A:\n    x = 2\n", source, target)[0] == source.replace(b"x = 1", b"x = 2")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("I don't know", "holds no definition of add"),
        ("```python\ndef sub(a, b):\n    return 1\n```", "holds no definition of add"),
        ("```python\ndef add(a, b):\n    return (a +\n```", "line 2 of its code"),
        ("```python\ndef add(a, b):\n    x = 1\n    return a +\n    y\n```", "holds no definition of add"),
        ('```python\ndef add(a, b):\n    """Add."""\n    return a - b\n```', "repeats add without a change"),
        ("```python\ndef add(a, b):\n    # ... 3 lines left out ...\n    return a\n```", "leaves code out"),
    ],
)
def test_bad_function_answers(answer: str, message: str) -> None:
    with pytest.raises(EditFormatError, match=message):
        edited("function", answer, target=_add())


def test_function_needs_a_target_that_is_a_definition() -> None:
    with pytest.raises(EditFormatError, match="needs a target"):
        edited("function", "def f(): pass")
    with pytest.raises(EditFormatError, match="not a function or a class"):
        make_target("a.py", b"x = 1\n", ByteSpan(0, 5), "x")


def test_trailing_code_that_does_not_parse_is_ignored_and_said() -> None:
    answer = "```python\ndef add(a, b):\n    return a + b\n\ndef broken(:\n    pass\n```"
    new, notes = edited("function", answer, target=_add())
    assert b"return a + b" in new
    assert notes == ("2 lines after the code were ignored",)


# ---------------------------------------------------------------- diff


@pytest.mark.parametrize(
    "header", ["@@ -4,3 +4,3 @@", "@@ -99,1 +99,77 @@ def add", "@@ ... @@"], ids=["right", "wrong", "none"]
)
def test_diff_with_any_numbers(header: str) -> None:
    answer = f'```diff\n--- a/m.py\n+++ b/m.py\n{header}\n def add(a, b):\n     """Add."""\n-    return a - b\n+    return a + b\n```\n'
    new, notes = edited("diff", answer)
    assert (new, notes) == (CODE.replace(b"a - b", b"a + b"), ())


def test_diff_of_several_hunks_and_a_new_file() -> None:
    files = {"m.py": CODE}
    answer = (
        "--- a/m.py\n+++ b/m.py\n@@ -6 +6 @@\n-    return a - b\n+    return a + b\n\n"
        "@@ -20 +20 @@\n def last():\n-    return 1\n+    return 2\n"
        "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1,2 @@\n+x = 1\n+y = 2\n"
    )
    patch = parse_answer(answer, edit_format("diff"), None, reader(files))
    assert new_contents(patch, lambda path: files.get(path)) == {
        "m.py": CODE.replace(b"a - b", b"a + b").replace(b"return 1", b"return 2"),
        "new.py": b"x = 1\ny = 2\n",
    }


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("no diff", "no diff hunk"),
        ("--- a/m.py\n+++ b/m.py\n@@ -1 +1 @@\n-import sys\n+import re\n", "match nowhere"),
        ("--- a/m.py\n+++ b/m.py\n@@ -1 +1 @@\n+import re\n", "without context"),
        ("--- a/q.py\n+++ b/q.py\n@@ -1 +1 @@\n-import os\n+import re\n", "there is no file 'q.py'"),
        ("--- a/m.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-import os\n", "deleting files"),
        ("rename from a\nrename to b\n", "only changed and new text files"),
        ("@@ -1 +1 @@\n-import os\n+import re\n", "names no file"),
        ("--- a/m.py\n+++ b/m.py\n@@ @@\n-import os\n+import re\ndef add(a, b):\n-    return 9\n", "neither ' '"),
    ],
)
def test_bad_diffs(answer: str, message: str) -> None:
    with pytest.raises(EditFormatError, match=message):
        edited("diff", answer)


# ---------------------------------------------------------------- the rest


def test_a_short_function_is_quoted_next_to_the_answer() -> None:
    assert 'as it is now:\n```python\ndef add(a, b):\n    """Add."""\n    return a - b\n```' in instructions(
        "function", _add()
    )
    source = b"def add(a, b):\n" + b"    a = 1\n" * 60
    long = make_target("m.py", source, ByteSpan(0, len(source)), "add")
    assert "as it is now" not in instructions("function", long)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n    return a\n\n\ndef other():\n    pass", "\n    return a\n\n\n"),
        ("\n    return a\n```", "\n    return a\n```"),
        ("\n    def inner():\n        pass\n", "\n    def inner():\n        pass\n"),
    ],
)
def test_what_comes_after_the_function_is_cut_off(text: str, expected: str) -> None:
    assert without_stop(text, stop_strings("function", _add())) == expected


def test_instructions_for_every_format() -> None:
    assert "<<<<<<< SEARCH" in instructions("search-replace")
    assert "`add` of m.py" in instructions("function", _add())
    assert "diff" in instructions("diff")
    assert answer_prefix("function", _add()) == "```python\ndef add(a, b):"
    assert answer_prefix("search-replace") == ""
    assert stop_strings("function")[:3] == ("\n```", "\ndef ", "\nasync def ")
    assert stop_strings("search-replace") == ()
    for bad in ("nope", "function"):
        with pytest.raises(UsageError):
            instructions(bad)
    with pytest.raises(UsageError, match="unknown edit format 'nope'"):
        edit_format("nope")


def test_apply_edit_refuses_another_base() -> None:
    patch = parse_answer(
        block("    return 1\n", "    return 2\n"), edit_format("search-replace"), None, reader({"m.py": CODE})
    )
    with pytest.raises(EditError, match="not the file"):
        apply_edit(CODE + b"#", patch.files[0])


def test_a_file_that_did_not_compile_before_is_noted() -> None:
    new, notes = edited("search-replace", block("a = 1\n", "a = 2\n"), b"a = 1\nprint 'x'\n")
    assert new == b"a = 2\nprint 'x'\n"
    assert notes == ("m.py didn't compile before the edit; its syntax was not checked",)
