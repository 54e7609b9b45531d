"""An exported graph on the CPU: loading, running, and copying what a request has seen.

The graph keeps keys and values inside a request and can't forget single tokens. So a prefilled prompt is taken out of
its request as arrays, and whatever continues it starts in a request of its own. The compiled model holds no state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import openvino
from openvino import opset13

from agentctx.errors import EngineUnavailable, ModelUnavailable, NotEnoughMemory
from agentctx.exports import find_export
from agentctx.prompt import Float32
from agentctx.spec.engines.cpus import physical_cores
from agentctx.spec.engines.folder import read_config, refuse

ENGINE = "openvino"
GRAPH = "openvino_model.xml"
# Decoders with full attention and rotary embeddings only; each is compared with a masked dense forward in the tests.
SUPPORTED = frozenset({"llama", "qwen2"})

_INPUTS = frozenset({"input_ids", "attention_mask", "position_ids", "beam_idx"})
_LAST = "agentctx_last"
# Where nothing is to be lost: on a CPU with bfloat16 units the plugin would use them, and keep keys in 8 bits.
_EXACT = {
    "INFERENCE_PRECISION_HINT": "f32",
    "KV_CACHE_PRECISION": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
}


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Keys and values of one prefilled row of `length` tokens: float32 arrays by the graph's names; never changed."""

    length: int
    arrays: Mapping[str, Any]


@dataclass(slots=True, eq=False)
class OpenVinoModel:
    """A graph, compiled when it is needed: all requests of a compiled model share its buffers.

    A request that failed leaves the shapes that it was given behind in there, and the next one, of any session, fails
    or worse. So a compiled model is given up with the first error, and the next run compiles anew.
    """

    name: str
    weights: str
    graph: Any
    settings: Mapping[str, str]
    compiled: Any = None

    def compile(self) -> None:
        if self.compiled is None:
            self.compiled = openvino.Core().compile_model(self.graph, "CPU", dict(self.settings))

    def run(self, state: State | None = None, rows: int = 1) -> Run:
        """A new request: empty, or `rows` copies of a state."""
        with _mapped(self.name):
            self.compile()
            request = self.compiled.create_infer_request()
            if state is not None:
                for variable in request.query_state():
                    variable.state = openvino.Tensor(state.arrays[variable.name])
            return Run(self, request, 0 if state is None else state.length, [0] * rows)


@dataclass(slots=True, eq=False)
class Run:
    """One infer request: the tokens that it has seen."""

    model: OpenVinoModel
    request: Any
    length: int
    beams: list[int]  # the row of the state that each row of the next step continues

    def forward(self, ids: Any, positions: Any, *, last: int = 1) -> Float32:
        """float32 (rows, last, V): logits after the last `last` of the ids (rows, n) at `positions` (n,)."""
        ids = np.ascontiguousarray(ids, np.int64)
        rows, n = ids.shape
        inputs = {
            "input_ids": ids,
            "attention_mask": np.ones((rows, self.length + n), np.int64),
            "position_ids": np.ascontiguousarray(np.broadcast_to(np.asarray(positions, np.int64), (rows, n))),
            "beam_idx": np.asarray(self.beams, np.int32),
            _LAST: np.asarray([last], np.int64),
        }
        with _mapped(self.model.name):
            try:
                self.request.infer(inputs)
            except BaseException:
                self.model.compiled = None
                raise
            logits: Float32 = np.array(self.request.get_output_tensor(0).data, np.float32)  # the buffer is reused
        self.length += n
        self.beams = list(range(rows))
        return logits

    def prefill(self, ids: Any, positions: Any, chunk: int) -> Float32:
        """float32 (V,): logits after the last id."""
        logits: Float32 = np.zeros(0, np.float32)
        for start in range(0, len(ids), chunk):
            part = slice(start, start + chunk)
            logits = self.forward([ids[part]], positions[part])[0, -1]
        return logits

    def state(self) -> State:
        """A copy of what this request's only row has seen."""
        with _mapped(self.model.name):
            arrays = {variable.name: variable.state.data.copy() for variable in self.request.query_state()}
        return State(self.length, arrays)


def load_model(folder: Path, name: str) -> OpenVinoModel:
    """The export of the model in `folder`, compiled for the CPU.

    Raises EngineUnavailable (unsupported), ModelUnavailable (no export, stale, damaged), NotEnoughMemory.
    """
    refuse(read_config(folder), name, SUPPORTED)
    export = find_export(folder, ENGINE, name)
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": str(physical_cores())}
    if export.weights == "float32":
        settings |= _EXACT
    with _mapped(name, loading=True):
        graph = openvino.Core().read_model(export.path / GRAPH)
        if not {next(iter(one.get_names()), "") for one in graph.inputs} >= _INPUTS:
            raise EngineUnavailable(f"the graph of {name} lacks one of the inputs {', '.join(sorted(_INPUTS))}")
        _only_last_logits(graph, name)
        model = OpenVinoModel(name, export.weights, graph, settings)
        model.compile()
        return model


def _only_last_logits(graph: Any, name: str) -> None:
    """Cut the states before the head to the last `agentctx_last` tokens, an input of the graph from now on.

    The head of a whole chunk would cost as much as some layers, and 4,096 tokens of 152,000 logits are 2.5 GB.
    """
    head = graph.get_results()[0].input_value(0).get_node()
    while head.get_type_name() in ("Convert", "Divide", "Multiply"):  # of scaled logits
        head = head.input_value(0).get_node()
    if head.get_type_name() != "MatMul":
        raise EngineUnavailable(f"the graph of {name} ends in {head.get_type_name()}, not in a head")
    last = opset13.parameter([1], openvino.Type.i64, name=_LAST)
    last.output(0).get_tensor().set_names({_LAST})
    one, end = np.asarray([1], np.int64), np.asarray([np.iinfo(np.int64).max], np.int64)
    cut = opset13.slice(head.input_value(0), opset13.negative(last), end, one, one)
    head.input(0).replace_source_output(cut.output(0))
    graph.add_parameters([last])
    graph.validate_nodes_and_infer_types()


@contextmanager
def _mapped(name: str, *, loading: bool = False) -> Iterator[None]:
    """Foreign exceptions as ours. OpenVINO raises RuntimeError for all that it can't do."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, MemoryError) or "bad_alloc" in str(error) or "allocate" in str(error):
            raise NotEnoughMemory(f"{name} does not fit into memory: {error}", hint="choose a smaller model") from error
        if loading:
            raise ModelUnavailable(
                f"the export of {name} can't be loaded: {error}", hint=f"agentctx models fetch {name} --engine openvino"
            ) from error
        raise EngineUnavailable(f"OpenVINO failed while running {name}: {error}") from error


def bytes_per_token(arrays: Sequence[Any], length: int) -> int:
    """Keys and values of one token in all layers, as float32."""
    return sum(int(array.nbytes) for array in arrays) // max(1, length)
