"""Options of a run: one frozen record, made from layers of mappings. Pure: reads no file and no environment.

Precedence: flag > environment > agentctx.toml > [tool.agentctx] > user file > default. An unknown key or a
value of the wrong type is an error that names the key and where it stands.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, get_type_hints

from agentctx.errors import ConfigError


class OnOmission(StrEnum):
    REPAIR = "repair"
    FLAG = "flag"
    FAIL = "fail"
    DENSE = "dense"


class OverBudget(StrEnum):
    REDUCE = "reduce"
    RAISE = "raise"
    DENSE = "dense"
    FAIL = "fail"


class FailOn(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    NEVER = "never"


class Dtype(StrEnum):
    AUTO = "auto"
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


class EditFormat(StrEnum):
    AUTO = "auto"
    FUNCTION = "function"
    SEARCH_REPLACE = "search-replace"
    DIFF = "diff"


class Changes(StrEnum):
    ALL = "all"
    STAGED = "staged"
    NONE = "none"


def _option(default: Any, text: str, *, low: float | None = None, high: float | None = None) -> Any:
    return field(default=default, metadata={"help": text, "low": low, "high": high})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Every option with its default. `help` is the text of the flag, of the docs and of `config show`."""

    budget: int | None = _option(None, "hard limit of the kept prompt, in tokens (default 4096)", low=1)
    keep: float | None = _option(None, "keep this fraction of the window instead of a budget", low=0.001, high=1.0)
    window: int | None = _option(None, "tokens to pack before selection (default: twice the budget)", low=1)
    model: str | None = _option(None, "main model: a fetched name, a folder or a hub id")
    tokenizer: str | None = _option(None, "tokenizer.json to count with when there is no --model")
    drafter: str = _option("none", "model that scores the window's tokens, or 'none'")
    drafter_layers: int | None = _option(None, "stop the drafter after this many layers", low=1)
    drafter_device: str = _option(
        "auto", "where torch runs the drafter: auto (a GPU if there is one), cpu, cuda or cuda:N"
    )
    drafter_dtype: Dtype = _option(
        Dtype.AUTO, "what torch holds the drafter in (auto: bfloat16 on GPUs and CPUs that multiply it, else float32)"
    )
    scorer: str | None = _option(None, "how the drafter's tokens are scored (default: what its calibration is for)")
    calibration: str | None = _option(None, "file of `bench calibrate` for the drafter (default: what ships for it)")
    engine: str = _option(
        "auto",
        "library that runs the main model (auto: mlx on Apple Silicon, openvino for an exported model, else torch)",
    )
    device: str = _option("auto", "where torch runs the main model: auto (a GPU if there is one), cpu, cuda, cuda:N")
    dtype: Dtype = _option(Dtype.AUTO, "what torch holds the main model in (auto: float32 on a CPU, bfloat16 on a GPU)")
    url: str | None = _option(
        None, "address of a server: any OpenAI-compatible one (openai), or vLLM with the plugin (vllm)"
    )
    served_model: str | None = _option(None, "the server's name of --model, for --engine vllm (default: its only one)")
    force_sparse: bool = _option(False, "sparse prefill even where the estimate says that dense is cheaper")
    force_dense: bool = _option(False, "no drafter scoring, whatever the estimate says")
    text_level: bool = _option(False, "let a drafter with another tokenizer select text")
    on_omission: OnOmission = _option(OnOmission.REPAIR, "what to do about dropped definitions that kept code uses")
    over_budget: OverBudget = _option(OverBudget.REDUCE, "what to do when the pins need more than the budget")
    fail_on: FailOn = _option(FailOn.ERROR, "lowest severity of a finding that makes `check` exit 1")
    samples: int = _option(1, "candidates to draw from one prefill", low=1, high=256)
    temperature: float = _option(0.0, "0 is greedy; more than one sample needs more than 0", low=0.0, high=2.0)
    top_p: float = _option(0.95, "nucleus of the sampling", low=0.01, high=1.0)
    seed: int = _option(0, "seed of the sampling", low=0)
    max_new: int = _option(512, "most tokens of an answer", low=1)
    edit_format: EditFormat = _option(EditFormat.AUTO, "form of the answer that is asked for")
    check_cmd: str | None = _option(None, "command that decides whether an edit is right (default: the failing test)")
    check_timeout: float = _option(300.0, "seconds after which a check has failed", low=0.1)
    protect: tuple[str, ...] = _option((), "globs of files that edits must not touch")
    pins: tuple[str, ...] = _option((), "PATH, PATH:LINE or PATH#SYMBOL to keep whatever the scores say")
    since: str | None = _option(None, "evidence: the change since this revision, the work tree included")
    changes: Changes = _option(Changes.ALL, "uncommitted changes that count as evidence when there is no --since")
    coverage: tuple[str, ...] = _option((), "coverage reports to use instead of those in the usual places, or 'none'")
    rank_model: str | None = _option(None, "ranking model of `bench train-rank` (default: the built-in one)")
    cache: bool = _option(True, "use the cache of parsed files and of what drafters have read")


DEFAULT_BUDGET = 4096
FLAG = "flag"  # name of the layer of the command line


@dataclass(frozen=True, slots=True)
class Layer:
    """One source of options. `name` is what `config show` prints: 'flag', 'AGENTCTX_BUDGET', a file's path.

    `level`: sources of equal precedence share one; '' = the name. They can't take back what another one says.
    """

    name: str
    values: Mapping[str, object]
    level: str = ""


@dataclass(frozen=True, slots=True)
class Resolved:
    options: RunOptions
    sources: Mapping[str, str]  # option -> layer name, 'default' where none gave it


def resolve(layers: Sequence[Layer]) -> Resolved:
    """Options from layers, highest precedence first. Of two that exclude each other, the higher layer's holds.

    Raises:
        ConfigError: an unknown key, a wrong type or a value out of range, named with its layer; or two options
            of one layer (or level) that exclude each other.
    """
    known = {option.name: option for option in fields(RunOptions)}
    hints = get_type_hints(RunOptions)
    values: dict[str, Any] = {}
    sources: dict[str, Layer] = {}
    for layer in reversed(layers):
        for raw, value in layer.values.items():
            key = raw.replace("-", "_")
            if key not in known:
                raise _unknown(raw, layer.name, list(known))
            values[key] = _checked(raw, value, str(hints[key]), hints[key], known[key].metadata, layer.name)
            sources[key] = layer
        _settle_pairs(values, sources, layer)
    names = {key: sources[key].name if key in sources else "default" for key in known}
    return Resolved(RunOptions(**values), names)


def _unknown(key: str, where: str, known: list[str]) -> ConfigError:
    near = difflib.get_close_matches(key.replace("-", "_"), known, n=1)
    hint = f"did you mean '{near[0].replace('_', '-')}'?" if near else "`agentctx config show` lists the options"
    return ConfigError(f"unknown option '{key}' in {where}", hint=hint)


def _named(key: str, where: str) -> str:
    """The option as the user wrote it."""
    return f"--{key.replace('_', '-')}" if where == FLAG else f"'{key}' in {where}"


def _checked(key: str, value: object, hint: str, kind: Any, meta: Mapping[str, Any], where: str) -> object:
    """The value in its type; strings come from flags and the environment."""
    try:
        made = _convert(value, hint, kind)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{_named(key, where)} is {value!r}: {error}") from error
    low, high = meta["low"], meta["high"]
    if isinstance(made, int | float) and not isinstance(made, bool):
        if low is not None and made < low:
            raise ConfigError(f"{_named(key, where)} is {made}; the least is {low:g}")
        if high is not None and made > high:
            raise ConfigError(f"{_named(key, where)} is {made}; the most is {high:g}")
    return made


def _convert(value: object, hint: str, kind: Any) -> object:
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        if value not in [str(choice) for choice in kind]:
            raise ValueError(f"must be one of {', '.join(kind)}")
        return kind(value)
    if hint.startswith("tuple"):
        return _strings(value)
    if "bool" in hint:
        return _boolean(value)
    if "int" in hint:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise TypeError("must be a whole number")
        return int(value)
    if "float" in hint:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise TypeError("must be a number")
        number = float(value)
        if not math.isfinite(number):
            raise ValueError("must be a finite number")
        return number
    if not isinstance(value, str) or not value:
        raise TypeError("must be text")
    return value


def _strings(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(part for part in value.split(",") if part)
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return tuple(value)
    raise TypeError("must be a list of text")


def _boolean(value: object) -> bool:
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise TypeError("must be true or false")


_PAIRS = (("budget", "keep"), ("force_sparse", "force_dense"), ("since", "changes"))  # of each, at most one


def _settle_pairs(values: dict[str, Any], sources: dict[str, Layer], layer: Layer) -> None:
    """Take back what a lower layer gave and `layer` contradicts."""
    for pair in _PAIRS:
        if not all(values.get(key) for key in pair):
            continue
        levels = {key: sources[key].level or sources[key].name for key in pair}
        if len(set(levels.values())) == 1:
            one, other = (key.replace("_", "-") for key in pair)
            where = " and ".join(dict.fromkeys(sources[key].name for key in pair))
            raise ConfigError(f"'{one}' and '{other}' contradict each other (both in {where})", hint="give one of them")
        for key in pair:
            if sources[key] is not layer:
                del values[key], sources[key]
