"""Byte offsets, special tokens as text, digests, the estimate, and which tokenizer counts."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from agentctx.errors import ModelUnavailable
from agentctx.models.counting import tokenizer_for, tokenizer_of
from agentctx.models.estimate import EstimateTokenizer
from agentctx.models.folder import open_folder
from agentctx.models.store import models_dir
from agentctx.models.tokenizer import FileTokenizer
from agentctx.models.tokenizer_digest import cached_digest, digest_of

# Counts by the tokenizer of Qwen2.5-Coder-0.5B.
CODE = [
    ("python", 'def area(radius: float) -> float:\n    """Surface of a disc."""\n    return 3.14159 * radius**2\n', 31),
    (
        "javascript",
        "export const debounce = (fn, ms) => { let t; return (...args) => { clearTimeout(t); }; };\n",
        25,
    ),
    ("typescript", "interface Props<T extends string> { readonly items: T[]; onSelect?(item: T): void }\n", 21),
    ("go", "func (s *Server) Close() error {\n\ts.mu.Lock()\n\tdefer s.mu.Unlock()\n\treturn s.ln.Close()\n}\n", 26),
    (
        "rust",
        "impl<'a> Iterator for Chunks<'a> {\n    type Item = &'a [u8];\n    fn next(&mut self) -> Option<u8>;\n}\n",
        35,
    ),
    ("java", "@Override\npublic int hashCode() {\n    return Objects.hash(firstName, lastName);\n}\n", 16),
    ("c", '#include <stdio.h>\nint main(int argc, char **argv) {\n\tprintf("%d\\n", argc);\n\treturn 0x1F;\n}\n', 30),
    ("c++", "template <typename T>\nauto max(const T& a, const T& b) -> T { return a < b ? b : a; }\n", 30),
    ("c#", "public async Task<IActionResult> Get(int id) => Ok(await _db.Items.FindAsync(id));\n", 18),
    ("ruby", "class Stack\n  def push(x) = tap { @items << x }\n  attr_reader :items\nend\n", 24),
    ("php", "<?php\n$names = array_map(fn($u) => $u->name, $users);\necho implode(', ', $names);\n", 28),
    ("bash", 'for f in "$@"; do\n  [[ -f $f ]] && wc -l "$f" >&2\ndone\n', 27),
    ("kotlin", 'data class User(val id: Long, val name: String?) { fun label() = name ?: "#$id" }\n', 25),
    ("scala", "case class Point(x: Int, y: Int)\nval total = points.map(_.x).sum\n", 21),
    ("chinese", "# 计算两个数的和\ndef add(a, b):\n    return a + b  # 返回结果\n", 25),
    ("unicode", "x = 'naïve 日本語 🎉 Здравствуй é'\r\n", 19),
]


@pytest.fixture(scope="module")
def estimate() -> EstimateTokenizer:
    return EstimateTokenizer()


@pytest.fixture(scope="module")
def tiny_tokenizer(tiny_folder: Path) -> FileTokenizer:
    return tokenizer_of(open_folder(tiny_folder))


@pytest.mark.parametrize(("language", "text", "count"), CODE, ids=[row[0] for row in CODE])
def test_the_estimate_counts_as_qwen(language: str, text: str, count: int, estimate: EstimateTokenizer) -> None:
    assert estimate.count_batch([text]) == [count], language
    assert len(estimate.encode(text)[0]) == count


def test_the_estimate_needs_no_model_library() -> None:
    code = (
        "import sys; from agentctx.models.estimate import EstimateTokenizer; EstimateTokenizer().count_batch(['x'])\n"
        "heavy = ('torch', 'transformers', 'gguf', 'jinja2', 'huggingface_hub')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert done.stdout == "[]\n", done.stderr


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.characters(codec="utf-8"), max_size=60))
def test_offsets_are_byte_offsets_for_any_text(text: str, tiny_tokenizer: FileTokenizer) -> None:
    """The tiny tokenizer is byte-level and normalises nothing, so each token's bytes can be read off."""
    raw = text.encode()
    ids, starts = tiny_tokenizer.encode(text)
    ends = [*starts[1:], len(raw)]
    alphabet = {byte: char for char, byte in byte_characters().items()}
    pieces = ["".join(alphabet[byte] for byte in raw[a:b]) for a, b in zip(starts, ends[: len(starts)], strict=True)]
    assert pieces == [tiny_tokenizer._backend.id_to_token(token) for token in ids]
    assert tiny_tokenizer.decode(ids) == text


def byte_characters() -> dict[str, int]:
    """The byte-level alphabet, by the rule of its inventors: printable bytes are themselves, the rest follow 255."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


@settings(max_examples=100, deadline=None)
@given(text=st.text(st.characters(codec="utf-8"), max_size=60))
def test_offsets_ascend_where_text_is_normalised(text: str, estimate: EstimateTokenizer) -> None:
    ids, starts = estimate.encode(text)
    assert len(ids) == len(starts)
    assert starts == sorted(starts)
    assert all(0 <= start < len(text.encode()) for start in starts)
    assert starts[:1] == [0] * bool(ids)


def test_a_composed_accent_has_the_offset_of_its_base(estimate: EstimateTokenizer) -> None:
    """NFC shortens the text; the library's character offsets are translated."""
    ids, starts = estimate.encode("日 e\u0301 x")
    assert estimate.decode(ids) == "日 é x"
    assert starts == [0, 3, 7]


def test_lone_surrogates_count_as_replacement_characters(tiny_tokenizer: FileTokenizer) -> None:
    ids, starts = tiny_tokenizer.encode("a\ud800b")
    assert tiny_tokenizer.decode(ids) == "a\ufffdb"
    assert starts[-1] == 4
    assert tiny_tokenizer.count_batch(["a\ud800b"]) == [len(ids)]


def test_code_can_not_forge_special_tokens(tiny_tokenizer: FileTokenizer) -> None:
    """Neither special tokens nor those that a tokenizer only adds, like <tool_call>."""
    for token in ("<|im_end|>", "<tool_call>"):
        ids, starts = tiny_tokenizer.encode(f"x{token}é", special=True)
        assert len(ids) == 4
        assert starts == [0, 1, 1 + len(token), 2 + len(token)]
        plain, _ = tiny_tokenizer.encode(f"x{token}é")
        assert len(plain) == len(f"x{token}é".encode())
        assert not set(plain) & set(ids[1:2])
        assert tiny_tokenizer.count_batch([f"x{token}é"]) == [len(plain)]
        assert tiny_tokenizer.decode(plain) == tiny_tokenizer.decode(ids) == f"x{token}é"


def test_threads_do_not_disturb_each_other(tiny_tokenizer: FileTokenizer) -> None:
    text = "<|im_end|>" * 50
    wrong: list[int] = []

    def count(special: bool, expected: int) -> None:
        wrong.extend(n for _ in range(100) if (n := len(tiny_tokenizer.encode(text, special=special)[0])) != expected)

    threads = [threading.Thread(target=count, args=args) for args in ((True, 50), (False, 500)) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_truncation_and_padding_of_a_file_are_switched_off(tiny_folder: Path, tmp_path: Path) -> None:
    backend = Tokenizer.from_file(str(tiny_folder / "tokenizer.json"))
    backend.enable_truncation(4)
    backend.enable_padding(length=64)
    backend.save(str(tmp_path / "t.json"))
    tokenizer = FileTokenizer.load(tmp_path / "t.json", name="t")
    assert tokenizer.count_batch(["zzzzzzzz", "z"]) == [8, 1]


def test_a_tokenizer_with_metaspace_has_byte_offsets(tmp_path: Path) -> None:
    """Not byte-level: offsets come from the library."""
    vocab = {"<unk>": 0, "▁": 1, "é": 2, "a": 3, "▁a": 4, "日": 5}
    backend = Tokenizer(models.BPE(vocab=vocab, merges=[("▁", "a")], unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    backend.decoder = decoders.Metaspace(prepend_scheme="never")
    backend.save(str(tmp_path / "t.json"))
    tokenizer = FileTokenizer.load(tmp_path / "t.json", name="t")
    assert tokenizer.encode("éa a日a") == ([2, 3, 4, 5, 3], [0, 2, 3, 5, 8])


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"model": 3}', b"\xff\xfe"])
def test_no_tokenizer_file(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(content)
    with pytest.raises(ModelUnavailable, match=r"is no tokenizer\.json"):
        FileTokenizer.load(tmp_path / "t.json", name="t")
    with pytest.raises(ModelUnavailable, match="can't be read"):
        FileTokenizer.load(tmp_path / "absent.json", name="t")


# ---------------------------------------------------------------- digests


def document(tiny_folder: Path) -> dict[str, object]:
    loaded: dict[str, object] = json.loads((tiny_folder / "tokenizer.json").read_bytes())
    return loaded


def test_spellings_of_one_tokenizer_have_one_digest(tiny_folder: Path) -> None:
    plain = document(tiny_folder)
    other = json.loads(json.dumps(plain))
    added = {token["content"] for token in other["added_tokens"]}
    other["model"]["merges"] = [merge.split(" ") for merge in other["model"]["merges"]]
    vocab = other["model"]["vocab"]
    other["model"]["vocab"] = {token: vocab[token] for token in reversed(vocab) if token not in added}
    other["model"]["dropout"] = None
    other["added_tokens"].reverse()
    other["pre_tokenizer"]["pretokenizers"][1]["trim_offsets"] = False
    other["post_processor"] = other["padding"] = other["truncation"] = None
    assert other != plain
    assert digest_of(other) == digest_of(plain)


def swap(items: list[object]) -> None:
    items[0], items[1] = items[1], items[0]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda d: swap(d["model"]["merges"]), id="merge order"),
        pytest.param(lambda d: d["model"]["vocab"].update({"zz": 999}), id="vocabulary"),
        pytest.param(lambda d: d.update(normalizer={"type": "NFC"}), id="normalizer"),
        pytest.param(lambda d: d["pre_tokenizer"]["pretokenizers"].pop(0), id="pre-tokenizer"),
        pytest.param(lambda d: d["added_tokens"].pop(), id="added token"),
        pytest.param(lambda d: d["added_tokens"][0].update(id=77), id="id of an added token"),
        pytest.param(lambda d: d["model"].update(ignore_merges=True), id="model option"),
    ],
)
def test_what_changes_ids_changes_the_digest(change, tiny_folder: Path) -> None:
    before = document(tiny_folder)
    after = json.loads(json.dumps(before))
    change(after)
    assert digest_of(after) != digest_of(before)


def test_digests_are_remembered_and_a_broken_memo_is_ignored(tiny_folder: Path, tmp_path: Path) -> None:
    file = tiny_folder / "tokenizer.json"
    expected = digest_of(document(tiny_folder))
    assert cached_digest(file, tmp_path) == cached_digest(file, None) == expected
    (memo,) = tmp_path.iterdir()
    memo.write_text("0" * 64)
    assert cached_digest(file, tmp_path) == "0" * 64
    memo.write_bytes(b"\xff garbage")
    assert cached_digest(file, tmp_path) == expected
    assert memo.read_text() == expected


def test_the_manifest_holds_the_digest_of_the_file(tiny_folder: Path) -> None:
    manifest = open_folder(tiny_folder).manifest
    assert manifest is not None
    assert manifest.tokenizer_digest == digest_of(document(tiny_folder))


# ---------------------------------------------------------------- which one counts


def test_order_of_tokenizers(tiny_folder: Path, tmp_path: Path) -> None:
    file = str(tiny_folder / "tokenizer.json")
    assert tokenizer_for(None, None, tmp_path).name == "estimate"
    assert tokenizer_for(None, file, tmp_path).name == file
    assert tokenizer_for(str(tiny_folder), file, tmp_path).name == str(tiny_folder)
    assert tokenizer_for("a server's model", file, tmp_path).name == file
    with pytest.raises(ModelUnavailable, match="unknown model"):
        tokenizer_for("a server's model", None, tmp_path)
    with pytest.raises(ModelUnavailable, match="has not been fetched"):
        tokenizer_for("smollm2", None, tmp_path)
    shutil.copytree(tiny_folder, models_dir(tmp_path) / "smollm2")
    assert tokenizer_for(None, None, tmp_path).name == "smollm2"
    assert tokenizer_for("smollm2", file, tmp_path).name == "smollm2"
    assert tokenizer_for(None, file, tmp_path).name == file


def test_added_tokens_that_take_white_space_along(tiny_folder: Path, tmp_path: Path) -> None:
    """Some files let an added token swallow the blanks around it; offsets still ascend."""
    backend = Tokenizer.from_file(str(tiny_folder / "tokenizer.json"))
    backend.add_special_tokens([AddedToken("<mask>", special=True, normalized=False, lstrip=True)])
    backend.normalizer = normalizers.Sequence([])
    backend.save(str(tmp_path / "t.json"))
    tokenizer = FileTokenizer.load(tmp_path / "t.json", name="t")
    ids, starts = tokenizer.encode("a  <mask>b", special=True)
    assert (len(ids), starts) == (3, [0, 1, 9])
