"""The reader of golden cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.casefile import case_paths, read_case

TEXT = """# A title

Prose with `code` in it.

options: a=1; b=x y

`one.py`

```python
options: c=2
```

`expected`

```text
old
```

After.
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "case.md"
    path.write_text(TEXT)
    return path


def test_reads_title_options_files_and_expected(path: Path) -> None:
    case = read_case(path)
    assert case.title == "A title"
    assert dict(case.options) == {"a": "1", "b": "x y"}
    assert dict(case.files) == {"one.py": "options: c=2\n"}
    assert case.expected == "old\n"


def test_a_difference_fails(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENTCTX_UPDATE_CASES", raising=False)
    read_case(path).check("old")
    with pytest.raises(AssertionError, match="AGENTCTX_UPDATE_CASES"):
        read_case(path).check("new")
    assert path.read_text() == TEXT


def test_updating_rewrites_only_the_expected_block(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTCTX_UPDATE_CASES", "1")
    read_case(path).check("new\n```\nfence\n```")
    updated = path.read_text()
    assert updated == TEXT.replace("```text\nold\n```", "````text\nnew\n```\nfence\n```\n````")
    assert read_case(path).expected == "new\n```\nfence\n```\n"


def test_a_stage_without_cases_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="no cases"):
        case_paths("no-such-stage")
