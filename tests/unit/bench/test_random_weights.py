"""Seconds with random weights of published shapes: the table, the scorer that runs, and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from agentctx.bench.speed import random_pair
from agentctx.bench.speed.random_pair import RandomPair, random_pair_of, random_scorer
from agentctx.bench.speed.shapes import SHAPES, parse_shapes
from agentctx.cli.main import invoke
from agentctx.config import Dtype, RunOptions
from agentctx.errors import EngineUnavailable, NotEnoughMemory, UsageError
from agentctx.models.memory import Available
from agentctx.prompt import ModelInfo
from agentctx.spec.engines import load_device, load_random
from agentctx.spec.engines.wishes import Wish
from tests.trees import Repo
from tests.unit.bench.test_fidelity import CODE

TINY = RandomPair(*parse_shapes("tiny"))
# As published with the weights, in billions.
PARAMETERS = {
    "qwen2.5-0.5b": 0.49,
    "qwen2.5-1.5b": 1.54,
    "qwen2.5-7b": 7.62,
    "qwen2.5-14b": 14.77,
    "qwen2.5-32b": 32.76,
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_shapes_have_the_published_number_of_parameters(name: str) -> None:
    assert SHAPES[name].n_params / 1e9 == pytest.approx(PARAMETERS[name], abs=0.006)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("qwen2.5-32b", ("qwen2.5-32b", "qwen2.5-0.5b")),
        ("qwen2.5-7b:qwen2.5-1.5b", ("qwen2.5-7b", "qwen2.5-1.5b")),
        ("tiny", ("tiny", "tiny")),
    ],
)
def test_a_shape_may_name_its_drafter(text: str, names: tuple[str, str]) -> None:
    assert tuple(shape.name for shape in parse_shapes(text)) == names


@pytest.mark.parametrize("text", ["", "70b", "tiny:", "tiny:tiny:tiny"])
def test_unknown_shapes_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="there is no shape"):
        parse_shapes(text)


def info_of(name: str) -> ModelInfo:
    shape = SHAPES[name]
    return ModelInfo(
        name, "", shape.n_layers, shape.n_params, shape.hidden, shape.n_heads, shape.n_kv_heads, shape.head_dim,
        shape.vocab, 131072, "", "",
    )  # fmt: skip


def test_the_scorer_is_the_one_that_would_run_on_trained_weights() -> None:
    drafter, other = "qwen2.5-0.5b", "qwen2.5-1.5b"
    own, why = random_scorer(SHAPES[drafter], RunOptions(), info_of(drafter))
    assert (own.name, own.depth(24)) == ("hybrid", 16)
    assert "qwen2.5-coder-0.5b" in why
    assert random_scorer(SHAPES[other], RunOptions(drafter_layers=9), info_of(other))[0].depth(28) == 6
    assert random_scorer(SHAPES[other], RunOptions(), info_of(other))[0].name == "selective-icr"
    assert random_scorer(SHAPES[other], RunOptions(scorer="window"), info_of(other))[1] == "--scorer"
    with pytest.raises(EngineUnavailable):
        random_scorer(SHAPES[other], RunOptions(scorer="hybrid"), info_of(other))
    with pytest.raises(UsageError, match="has 24"):
        random_scorer(SHAPES[drafter], RunOptions(drafter_layers=25), info_of(drafter))


class TestOnTorch:
    @pytest.fixture(autouse=True)
    def _torch(self) -> None:
        pytest.importorskip("torch")
        pytest.importorskip("transformers")

    def test_weights_follow_the_seed_and_the_shape(self) -> None:
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM

        from agentctx.spec.engines.torch_random import random_model

        shape = SHAPES["tiny"]
        one, same, other = (random_model(shape.config, "tiny", seed).module for seed in (1, 1, 2))
        assert torch.equal(one.model.layers[2].mlp.up_proj.weight, same.model.layers[2].mlp.up_proj.weight)
        assert not torch.equal(one.model.layers[2].mlp.up_proj.weight, other.model.layers[2].mlp.up_proj.weight)
        assert one.lm_head.weight.data_ptr() == one.model.embed_tokens.weight.data_ptr()
        assert sum(p.numel() for p in one.parameters()) == shape.n_params
        assert not one.model.layers[0].self_attn.q_proj.bias.any()
        # Nothing of a model made in the ordinary way is missing: with the same weights it says the same.
        plain = AutoModelForCausalLM.from_config(AutoConfig.for_model(**shape.config), attn_implementation="eager")
        plain.load_state_dict(one.state_dict())
        ids = torch.arange(40)[None]
        with torch.inference_mode():
            torch.testing.assert_close(one(ids).logits, plain.eval()(ids).logits, rtol=0, atol=1e-4)

    def test_a_whole_prompt_in_one_forward_needs_no_mask(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What makes torch's fastest kernel possible on a GPU; at gaps too."""
        import numpy as np
        import torch

        from agentctx.spec.engines.torch_random import random_model

        seen: list[tuple[object, object]] = []
        real = torch.nn.functional.scaled_dot_product_attention

        def spy(*args: object, **options: object) -> object:
            seen.append((options.get("attn_mask"), options.get("is_causal")))
            return real(*args, **options)

        monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", spy)
        model = random_model(SHAPES["tiny"].config, "tiny", 0)
        ids, positions = np.arange(30), np.arange(30) * 3
        whole = model.prefill(ids, positions, model.new_cache(30), 30)
        assert seen == [(None, True)] * 3
        parts = model.prefill(ids, positions, model.new_cache(30), 8)
        assert seen[-1][0] is not None
        np.testing.assert_allclose(whole, parts, rtol=0, atol=1e-4)

    def test_forwards_are_as_large_as_memory_allows(self) -> None:
        from agentctx.spec.engines.torch_model import forward_size
        from agentctx.spec.engines.torch_random import random_model

        assert forward_size(65536, 512, free=60 << 30, per_token=300_000) == 65536
        assert 512 < forward_size(65536, 512, free=10 << 30, per_token=300_000) <= 4096
        assert forward_size(65536, 512, free=-1, per_token=300_000) == 512
        assert forward_size(100, 512, free=1 << 30, per_token=300_000) == 512
        assert random_model(SHAPES["tiny"].config, "tiny", 0).forward_size(4096, 256) == 256  # a CPU

    def test_too_little_memory_is_refused_before_anything_is_made(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(random_pair.memory, "available", lambda: Available(1000, "a test"))
        with pytest.raises(NotEnoughMemory, match="random tiny in float32 and random tiny in float32 with 256"):
            random_pair_of(TINY, RunOptions(drafter_dtype=Dtype.FLOAT32), 256, print)

    def test_a_gpu_counts_sixteen_bits_and_its_own_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module = load_device("torch")
        gpu = replace(module.device(), kind="cuda", name="a GPU", dtype="bfloat16", width=2, free_bytes=80 * 10**9)
        monkeypatch.setattr(module, "device", lambda wish, drafts=False: gpu)
        pair = RandomPair(*parse_shapes("qwen2.5-32b"))
        said: list[str] = []
        with pytest.raises(NotEnoughMemory, match="a GPU"):
            random_pair_of(pair, RunOptions(), 65536, said.append)
        roomy = replace(gpu, free_bytes=140 * 10**9)
        monkeypatch.setattr(module, "device", lambda wish, drafts=False: roomy)
        random_pair_of(pair, RunOptions(), 65536, said.append)
        assert "bfloat16 on a GPU" in said[-3]

    def test_two_devices_count_apart(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module = load_device("torch")
        cpu = module.device(Wish("cpu"))
        gpu = replace(cpu, kind="cuda:0", name="a GPU", dtype="bfloat16", width=2, free_bytes=70 * 10**9)
        monkeypatch.setattr(module, "device", lambda wish, drafts=False: cpu if drafts else gpu)
        monkeypatch.setattr(random_pair.memory, "available", lambda: Available(5 * 10**9, "a test"))
        said: list[str] = []
        with pytest.raises(NotEnoughMemory, match=r"random qwen2\.5-32b in bfloat16 with 65536 .* \(a GPU\)"):
            random_pair_of(RandomPair(*parse_shapes("qwen2.5-32b")), RunOptions(), 65536, said.append)
        monkeypatch.setattr(module, "device", lambda wish, drafts=False: gpu if drafts else cpu)
        with pytest.raises(NotEnoughMemory, match=r"random qwen2\.5-32b in float32 with 4096 .* \(a test\)"):
            random_pair_of(RandomPair(*parse_shapes("qwen2.5-32b")), RunOptions(), 4096, said.append)

    def test_more_tokens_than_positions_are_refused(self) -> None:
        with pytest.raises(UsageError, match="the shapes read 131072"):
            random_pair_of(TINY, RunOptions(), 200_000, print)

    def test_the_command(self, empty: Repo, capsys: pytest.CaptureFixture[str]) -> None:
        empty.commit({"calc.py": CODE, "more.py": CODE.replace("other", "more")})
        args = ["bench", "ttft", "fix add", "--repo", str(empty.root), "--random-weights", "tiny", "--repeats", "1"]
        code = invoke([*args, "--tokens", "900", "--keep", "0.6", "--warm-up", "--format", "json"])
        out, err = capsys.readouterr()
        assert code == 0, err
        made = json.loads(out)
        assert [row["state"] for row in made["rows"]] == ["cold", "repeat"]
        assert {row["layers"] for row in made["rows"]} == {2}
        random = made["random_weights"]
        assert (random["main"]["shape"], random["drafter"]["shape"], random["seed"]) == ("tiny", "tiny", 0)
        assert {"dtype", "device", "device_name", "scorer", "peak_device_bytes"} <= {*random}
        assert "weights are random" in err
        assert "to warm up" in err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--random-weights", "huge"], "there is no shape 'huge'"),
        (["--random-weights", "tiny", "--model", "smollm2"], "leave --model out"),
        (["--random-weights", "tiny", "--drafter", "smollm2"], "leave --drafter out"),
        (["--random-weights", "tiny", "--engine", "openvino"], "not on openvino"),
    ],
)
def test_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str) -> None:
    assert invoke(["bench", "ttft", "--repo", str(tmp_path), *more]) == 2
    assert said in capsys.readouterr().err


def test_other_engines_make_no_random_models() -> None:
    with pytest.raises(EngineUnavailable, match="makes no models with random weights"):
        load_random("mlx")
