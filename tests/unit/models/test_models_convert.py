"""GGUF -> folder: our files against transformers' GGUF code, and against what went in."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import pytest

from agentctx.errors import ModelUnavailable
from agentctx.models.convert import convert
from agentctx.models.folder import open_folder, verify
from agentctx.models.gguf_file import read_header
from agentctx.models.info import chat_of, info
from agentctx.models.safetensors_file import read_entries
from tests.unit.models.tiny_models import Shape, write_gguf

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

SHAPES = [
    pytest.param(Shape(), id="llama"),
    pytest.param(Shape(tied=False), id="llama-untied"),
    pytest.param(Shape(arch="qwen2", rule="qwen2", tied=False), id="qwen2"),
]


def oracle(file: Path, folder: Path) -> tuple[dict[str, object], dict[str, object]]:
    """Weights by transformers' own GGUF loader, and by loading our folder; both float16."""
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float16)
    theirs = load_gguf_checkpoint(str(file), return_tensors=True, model_to_load=model, torch_dtype=torch.float16)
    return theirs["tensors"], model.state_dict()


@pytest.mark.parametrize("shape", SHAPES)
def test_every_tensor_equals_transformers_gguf_loader(shape: Shape, tmp_path: Path) -> None:
    file, folder = tmp_path / "model.gguf", tmp_path / "out"
    folder.mkdir()
    write_gguf(file, shape)
    convert(file, folder, name="tiny", sha256="0" * 64)
    theirs, ours = oracle(file, folder)
    assert set(theirs) >= {entry.name for entry in read_entries(folder / "model.safetensors")}
    for name, weights in theirs.items():
        assert torch.equal(weights, ours[name]), name


@pytest.mark.parametrize("shape", SHAPES)
def test_tensors_hold_what_was_quantised(shape: Shape, tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    file, folder = tmp_path / "model.gguf", tmp_path / "out"
    folder.mkdir()
    written = write_gguf(file, shape)
    convert(file, folder, name="tiny", sha256="0" * 64)
    ours = load_file(folder / "model.safetensors")
    assert np.abs(ours["model.layers.1.mlp.down_proj.weight"] - written["blk.1.ffn_down.weight"]).max() < 0.03
    q = written["blk.0.attn_q.weight"]
    if shape.arch == "llama":  # rows 0, 2, 4.. of a head, then 1, 3, 5..
        q = np.concatenate([np.concatenate([head[0::2], head[1::2]]) for head in np.split(q, shape.heads)])
    assert np.abs(ours["model.layers.0.self_attn.q_proj.weight"] - q).max() < 0.03
    assert len(ours) == len(written)


def test_written_in_blocks_equals_written_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedding of a real model comes in several blocks of rows; a tiny one only with a small block."""
    file = tmp_path / "model.gguf"
    write_gguf(file)
    raw = []
    for name, values in (("one", 4_000_000), ("many", 640)):
        monkeypatch.setattr("agentctx.models.convert._CHUNK_VALUES", values)
        (tmp_path / name).mkdir()
        convert(file, tmp_path / name, name="tiny", sha256="0" * 64)
        raw.append((tmp_path / name / "model.safetensors").read_bytes())
    assert raw[0] == raw[1]


def test_tokenizer_and_chat_equal_transformers(tmp_path: Path) -> None:
    file, folder = tmp_path / "model.gguf", tmp_path / "out"
    folder.mkdir()
    write_gguf(file, Shape(arch="qwen2", rule="qwen2"))
    convert(file, folder, name="tiny", sha256="0" * 64)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path, gguf_file="model.gguf")
    ours = transformers.AutoTokenizer.from_pretrained(folder)
    for text in ("def self.ret(x):\n\treturn 12", "<|im_start|>user\né🎉<|im_end|>", "<tool_call> self"):
        assert ours(text)["input_ids"] == theirs(text)["input_ids"], text
    frame, notes = chat_of(open_folder(folder))
    messages = [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}]
    rendered = ours.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert frame.before_system + "S" + frame.before_user + "U" + frame.after_user == rendered
    assert notes == ()
    assert ours.eos_token == "<|im_end|>"


def test_config_and_info(tiny_folder: Path) -> None:
    config = json.loads((tiny_folder / "config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLM"]
    assert config["rms_norm_eps"] == 1e-5
    assert config["tie_word_embeddings"] is True
    assert "quantization_config" not in config
    folder = open_folder(tiny_folder)
    about = info(folder)
    assert (about.n_layers, about.hidden_size, about.n_heads, about.n_kv_heads, about.head_dim) == (2, 64, 4, 2, 16)
    assert (about.vocab_size, about.max_position) == (256 + 8 + 3 + 1 + 5, 512)
    model = transformers.AutoModelForCausalLM.from_pretrained(tiny_folder)
    assert about.n_params == sum(weights.numel() for weights in model.parameters())
    verify(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda raw: raw[:1000], "damaged"),
        (lambda raw: raw[:-2000], "passes the end"),
        (lambda raw: b"PK\x03\x04" + raw[4:], "not a GGUF file"),
        (lambda raw: raw[:4] + b"\x09\0\0\0" + raw[8:], "version 2 or 3"),
        (lambda raw: raw.replace(b"ffn_down", b"ffn_flop"), "no counterpart"),
        (lambda raw: raw.replace(b"smollm", b"smallm"), "rule 'smallm'"),
        (lambda raw: raw[:8] + b"\xff" * 8 + raw[16:], "damaged"),
        (lambda raw: b"", "0 bytes"),
    ],
)
def test_broken_files_are_refused(change, message: str, tiny, tmp_path: Path) -> None:
    file = tmp_path / "broken.gguf"
    file.write_bytes(change(tiny.gguf.read_bytes()))
    (tmp_path / "out").mkdir()
    with pytest.raises(ModelUnavailable, match=message):
        convert(file, tmp_path / "out", name="tiny", sha256="0" * 64)


def test_header_equals_the_gguf_library(tiny) -> None:
    header, theirs = read_header(tiny.gguf), gguf.GGUFReader(tiny.gguf)
    for key, field in theirs.fields.items():
        if not key.startswith("GGUF."):
            assert header.metadata[key] == field.contents(), key
    found = [(item.name, item.offset, item.shape) for item in header.tensors]
    assert found == [(t.name, t.data_offset, tuple(reversed(t.shape.tolist()))) for t in theirs.tensors]


def test_unknown_tensor_values_beyond_float16_are_refused(tmp_path: Path, tiny) -> None:
    file = tmp_path / "big.gguf"
    raw = bytearray(tiny.gguf.read_bytes())
    norm = next(item for item in read_header(tiny.gguf).tensors if item.name == "output_norm.weight")
    raw[norm.offset : norm.offset + 4] = np.float32(1e6).tobytes()
    file.write_bytes(raw)
    (tmp_path / "out").mkdir()
    with pytest.raises(ModelUnavailable, match=r"output_norm.weight holds values beyond float16"):
        convert(file, tmp_path / "out", name="tiny", sha256="0" * 64)
