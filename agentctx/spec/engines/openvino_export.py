"""Writes a model's folder as an OpenVINO graph: optimum-intel converts, nncf compresses the weights."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import openvino

from agentctx.errors import EngineUnavailable, ModelUnavailable, NotEnoughMemory
from agentctx.spec.engines.folder import read_config, refuse
from agentctx.spec.engines.openvino_model import GRAPH, SUPPORTED

# 64 divides the widths of small models (SmolLM2's 576 is no multiple of the usual 128).
GROUP_SIZE = 64
PACKAGES = ("openvino", "optimum-intel", "nncf", "transformers", "torch")


def export(source: Path, target: Path, name: str, weights: str, work: Path) -> Mapping[str, str]:
    """Write the graph of the model in `source` to the empty folder `target`; the versions of the packages used.

    Args:
        weights: int8 (per channel), int4 (groups of 64, embeddings and head int8), or float32 (as they are: nothing
            is lost, 16-bit weights stay 16 bits wide in the file).
        work: an empty folder for the graph before compression.

    Raises:
        EngineUnavailable: the model's type is unknown here, or a package is missing or broken.
        ModelUnavailable: the model can't be converted.
        NotEnoughMemory: memory ran out.
    """
    refuse(read_config(source), name, SUPPORTED)
    _require_packages()
    with _mapped(name), _quiet():
        _convert(source, work if weights != "float32" else target)
        if weights != "float32":
            _compress(work / GRAPH, target / GRAPH, weights)
    for extra in target.iterdir():  # optimum-intel copies the tokenizer, too
        if extra.stem != Path(GRAPH).stem:
            extra.unlink()
    return {package: version(package) for package in PACKAGES}


def _convert(source: Path, target: Path) -> None:
    from optimum.exporters.openvino import main_export
    from optimum.intel import OVConfig

    main_export(
        str(source),
        str(target),
        task="text-generation-with-past",
        library_name="transformers",
        ov_config=OVConfig(dtype="fp32"),  # "fp16" would round weights of 32 bits
        stateful=True,
        convert_tokenizer=False,
        local_files_only=True,
    )


def _compress(source: Path, target: Path, weights: str) -> None:
    import nncf

    modes = nncf.CompressWeightsMode
    graph = openvino.Core().read_model(source)
    if weights == "int8":
        graph = nncf.compress_weights(graph, mode=modes.INT8_ASYM)
    else:
        graph = nncf.compress_weights(graph, mode=modes.INT4_ASYM, group_size=GROUP_SIZE, ratio=1.0)
    openvino.save_model(graph, target, compress_to_fp16=False)


def _require_packages() -> None:
    hint = 'pip install "agentctx[openvino]"'
    for package in ("optimum", "nncf", "torch", "transformers"):
        if find_spec(package) is None:
            raise EngineUnavailable(f"exporting for OpenVINO needs {package}", hint=hint)
    if find_spec("torchvision") is None:
        return
    try:
        import torchvision  # noqa: F401 - transformers imports it when it is there, and fails obscurely
    except (ImportError, OSError, RuntimeError) as error:
        raise EngineUnavailable(
            f"the installed torchvision doesn't fit the installed torch: {error}", hint="pip uninstall torchvision"
        ) from error


@contextmanager
def _mapped(name: str) -> Iterator[None]:
    try:
        yield
    except MemoryError as error:
        raise NotEnoughMemory(f"memory ran out while exporting {name}", hint="choose a smaller model") from error
    except ImportError as error:
        raise EngineUnavailable(
            f"{name} can't be exported: {error}", hint='pip install "agentctx[openvino]"'
        ) from error
    except (RuntimeError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk; the caller knows what to say
            raise
        raise ModelUnavailable(f"{name} can't be exported for OpenVINO: {error}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """No tables, bars or advice from the libraries: our stdout is for results. Their settings are put back."""
    from agentctx.spec.engines.transformers_quiet import quiet

    logger = logging.getLogger("nncf")
    level = logger.level
    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        redirect_stdout(nowhere),
        warnings.catch_warnings(),
        quiet(),
    ):
        warnings.simplefilter("ignore")  # tracing warns of every branch that it fixes
        try:
            logger.setLevel(logging.ERROR)
            yield
        finally:
            logger.setLevel(level)
