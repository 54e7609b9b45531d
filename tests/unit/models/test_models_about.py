"""Chat frames, information without loading, compatibility, memory."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from agentctx.errors import ModelUnavailable, NotEnoughMemory
from agentctx.models.chat import chat_frame
from agentctx.models.compat import Level, compare
from agentctx.models.folder import open_folder
from agentctx.models.info import chat_of, info
from agentctx.models.memory import Available, available, needed_bytes, parse_vm_stat, require
from agentctx.models.store import resolve, resolve_served
from agentctx.prompt import ChatFrame, ModelInfo
from tests.unit.models.tiny_models import TEMPLATE

USER_FIRST = (
    "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no system role') }}"
    "{% endif %}[INST] {{ m['content'] }} [/INST]{% endfor %}"
)
FRAME = ChatFrame("<|im_start|>system\n", "<|im_end|>\n<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n")


@pytest.mark.parametrize(
    ("config", "frame"),
    [
        ({}, ChatFrame()),
        ({"chat_template": TEMPLATE}, FRAME),
        ({"chat_template": [{"name": "tool_use", "template": "x"}, {"name": "default", "template": TEMPLATE}]}, FRAME),
        ({"chat_template": USER_FIRST, "bos_token": {"content": "<s>"}}, ChatFrame("<s>[INST] ", "\n\n", " [/INST]")),
    ],
)
def test_chat_frames(config: dict[str, object], frame: ChatFrame) -> None:
    assert chat_frame(config) == frame


@pytest.mark.parametrize(
    "template", ["{% for", "{{ messages[7].content }}", "nothing", "{{ ''.__class__.__mro__ }}", "{{ 1 / 0 }}"]
)
def test_templates_that_can_not_be_used(template: str) -> None:
    with pytest.raises(ModelUnavailable, match="chat template"):
        chat_frame({"chat_template": template})


def user_folder(tiny_folder: Path, tmp_path: Path, **config: object) -> Path:
    """The tiny folder without its manifest, with changes in config.json."""
    path = tmp_path / "mine"
    shutil.copytree(tiny_folder, path)
    (path / "agentctx.json").unlink()
    document = json.loads((path / "config.json").read_text()) | config
    (path / "config.json").write_text(json.dumps({k: v for k, v in document.items() if v is not None}))
    return path


def test_chat_of_user_folders(tiny_folder: Path, tmp_path: Path) -> None:
    path = user_folder(tiny_folder, tmp_path)
    assert chat_of(open_folder(path)) == (FRAME, ())
    (path / "chat_template.jinja").write_text("{% for")
    frame, notes = chat_of(open_folder(path))
    assert frame == ChatFrame()
    assert "can't be rendered" in notes[0]
    (path / "chat_template.jinja").unlink()
    (path / "tokenizer_config.json").unlink()
    frame, notes = chat_of(open_folder(path))
    assert (frame, notes) == (ChatFrame(), ("mine has no chat template; prompts are sent without chat markers",))


def test_info_without_a_manifest_is_the_same(tiny_folder: Path, tmp_path: Path) -> None:
    fetched = info(open_folder(tiny_folder))
    path = user_folder(tiny_folder, tmp_path, head_dim=None)
    assert info(open_folder(path)) == replace(fetched, name="mine", folder=str(path))


def test_info_reads_the_decoder_of_a_model_with_several_modalities(tiny_folder: Path, tmp_path: Path) -> None:
    path = user_folder(tiny_folder, tmp_path)
    inner = json.loads((path / "config.json").read_text())
    outer = {"architectures": ["SeeingForConditionalGeneration"], "text_config": inner}
    (path / "config.json").write_text(json.dumps(outer))
    about = info(open_folder(path))
    assert (about.architecture, about.hidden_size) == ("SeeingForConditionalGeneration", 64)


@pytest.mark.parametrize("value", [None, "many", 0, True])
def test_info_names_the_key_that_is_wrong(value: object, tiny_folder: Path, tmp_path: Path) -> None:
    path = user_folder(tiny_folder, tmp_path, num_hidden_layers=value)
    with pytest.raises(ModelUnavailable, match=r"config\.json is damaged: num_hidden_layers"):
        info(open_folder(path))


def test_compatibility(tiny_folder: Path, tmp_path: Path) -> None:
    main = open_folder(tiny_folder)
    same = compare(main, main)
    assert (same.level, same.contexts, same.vocab_sizes) == (Level.POSITION, (512, 512), (273, 273))
    other = user_folder(tiny_folder, tmp_path, max_position_embeddings=256)
    tokenizer = json.loads((other / "tokenizer.json").read_bytes())
    tokenizer["model"]["merges"].pop()
    (other / "tokenizer.json").write_text(json.dumps(tokenizer))
    text = compare(open_folder(other), main)
    assert text.level == Level.TEXT
    assert all(digest[:12] in text.reasons[0] for digest in text.digests)
    assert text.digests[0] != text.digests[1]
    assert text.differ == ("code", "indentation")  # both hold `return`
    assert "probes differ in code, indentation" in text.reasons[0]
    assert "mine sees 256 tokens, tiny 512: longer prompts go in windows" in text.reasons


def test_probes_are_said(tiny_folder: Path) -> None:
    """Seven texts and two scaffoldings, each with and without special tokens."""
    same = compare(open_folder(tiny_folder), open_folder(tiny_folder))
    assert (same.probes, same.differ) == (18, ())
    assert "of 18 probes all agree" in same.reasons[0]
    assert [r for r in same.reasons if "rotary positions (default, base 10000), context 512" in r]


def test_a_digest_that_promises_too_much_is_found_out(tiny_folder: Path, tmp_path: Path) -> None:
    """A manifest remembers a digest; the file behind it was changed since."""
    other = tmp_path / "changed"
    shutil.copytree(tiny_folder, other)
    file = other / "tokenizer.json"
    size, tokenizer = file.stat().st_size, json.loads(file.read_bytes())
    del tokenizer["model"]["merges"][:2]
    file.write_bytes(json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")).encode().ljust(size))
    found = compare(open_folder(other), open_folder(tiny_folder))
    assert found.digests[0] == found.digests[1]
    assert found.level == Level.TEXT
    assert found.reasons[0].endswith("and yet probes differ in code: one of the files is damaged")


def test_other_scaffolding_and_windows_are_said(tiny_folder: Path, tmp_path: Path) -> None:
    other = user_folder(tiny_folder, tmp_path, sliding_window=128, rope_scaling={"rope_type": "yarn", "factor": 4.0})
    config = json.loads((other / "tokenizer_config.json").read_bytes())
    config["chat_template"] = config["chat_template"].replace("assistant", "model")
    (other / "tokenizer_config.json").write_text(json.dumps(config))
    reasons = " ".join(compare(open_folder(other), open_folder(tiny_folder)).reasons)
    assert "their chat templates differ" in reasons
    assert "mine: rotary positions (yarn, base 10000), context 512, attention slides over 128 tokens" in reasons


def test_a_served_model_needs_no_weights(tiny_folder: Path, tmp_path: Path) -> None:
    """Parameters are estimated within a tenth; a description that lacks a file is refused by its name."""
    whole, path = open_folder(tiny_folder), tmp_path / "described"
    path.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tiny_folder / name, path / name)
    described = resolve_served(str(path), tmp_path)
    found, known = info(described, served=True), info(whole)
    assert found.n_params == pytest.approx(known.n_params, rel=0.1)
    assert (found.weights_digest, found.tokenizer_digest) == ("", known.tokenizer_digest)
    with pytest.raises(ModelUnavailable, match="weights"):
        resolve(str(path), tmp_path)
    (path / "tokenizer.json").unlink()
    with pytest.raises(ModelUnavailable, match=r"tokenizer\.json is missing"):
        resolve_served(str(path), tmp_path)


def test_an_encoder_can_not_draft(tiny_folder: Path, tmp_path: Path) -> None:
    other = open_folder(user_folder(tiny_folder, tmp_path, architectures=["BertModel"]))
    assert compare(other, open_folder(tiny_folder)).level == Level.NONE


# ---------------------------------------------------------------- memory

QWEN = ModelInfo("q", "", 28, 1_777_088_000, 1536, 12, 2, 128, 151936, 32768, "", "Qwen2ForCausalLM")


def test_needed_memory_of_a_real_model() -> None:
    """7.1 GB of float32 weights, 57 kB of cache a token; the rest stays below 1.5 GB."""
    at_16k = needed_bytes(QWEN, n_tokens=16384)
    weights_and_cache = 4 * 1_777_088_000 + 2 * 28 * 2 * 128 * 4 * 16384
    assert weights_and_cache < at_16k < weights_and_cache + 1_500_000_000
    attention_and_masks = 512 * 16384 * (4 * 2 * 12 + 12)  # of a chunk: scores of 12 heads, twice; distances, masks
    assert at_16k > weights_and_cache + attention_and_masks
    assert needed_bytes(QWEN, n_tokens=16384, weight_bytes=0.5) < at_16k - 6_000_000_000


def test_require() -> None:
    assert require(5, Available(10, "MemAvailable"), "q") == ()
    with pytest.raises(NotEnoughMemory, match=r"q needs 7\.1 GB of memory; 4\.2 GB are free \(MemAvailable\)"):
        require(7_100_000_000, Available(4_200_000_000, "MemAvailable"), "q")
    assert require(7_100_000_000, Available(None, "unknown here"), "q") == ("q needs 7.1 GB; unknown here",)


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


MEMINFO = "MemTotal:       16000000 kB\nMemFree: 1 kB\nMemAvailable:    8000000 kB\n"


@pytest.mark.skipif("sys.platform == 'darwin'")
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"proc/meminfo": MEMINFO}, 8_192_000_000, id="no container"),
        pytest.param({}, None, id="unknown"),
        pytest.param(
            {
                "proc/meminfo": MEMINFO,
                "proc/self/cgroup": "0::/a/b\n",
                "cg/a/b/memory.max": "max\n",
                "cg/a/b/memory.current": "5\n",
                "cg/a/memory.max": "3000000000\n",
                "cg/a/memory.current": "1000000000\n",
                "cg/a/memory.stat": "anon 7\nfile 500000000\n",
            },
            2_500_000_000,
            id="v2, limit of the parent",
        ),
        pytest.param(
            {
                "proc/meminfo": MEMINFO,
                "proc/self/cgroup": "5:cpu:/\n4:memory:/x\n",
                "cg/memory/x/memory.limit_in_bytes": "2000000000\n",
                "cg/memory/x/memory.usage_in_bytes": "2000000100\n",
                "cg/memory/memory.limit_in_bytes": "9223372036854771712\n",
                "cg/memory/memory.usage_in_bytes": "5\n",
            },
            0,
            id="v1, used up",
        ),
    ],
)
def test_available_memory(files: dict[str, str], expected: int | None, tmp_path: Path) -> None:
    tree(tmp_path, files)
    assert available(tmp_path / "proc", tmp_path / "cg").n_bytes == expected


def test_available_memory_here() -> None:
    here = available().n_bytes
    assert here is None or 10_000_000 < here < 1 << 50


def test_vm_stat() -> None:
    text = (
        "Mach Virtual Memory Statistics: (page size of 16384 bytes)\nPages free:     1000.\nPages active: 9.\n"
        "Pages inactive:   500.\nPages speculative: 1.\nPages wired down: 7.\nPages purgeable: 2.\n"
    )
    assert parse_vm_stat(text).n_bytes == 16384 * 1503
    assert parse_vm_stat("?").n_bytes is None
