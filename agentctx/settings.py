"""Where options come from: environment and files -> the layers of `config.resolve`. IO.

Files: `agentctx.toml` at the repository's root, `[tool.agentctx]` of its pyproject.toml, and
`config.toml` in the user's configuration folder. A `[runs]` table is not ours to read.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import platformdirs

from agentctx.config import FLAG, Layer, Resolved, RunOptions, resolve
from agentctx.errors import ConfigError

PROJECT_FILE = "agentctx.toml"
_TABLES = ("runs",)
_YOURS = ("url",)  # a repository that was cloned must not decide where code, and a key, are sent


def load(root: Path | None, flags: Mapping[str, object], environment: Mapping[str, str]) -> Resolved:
    """Options of a run in `root`. `flags` holds what was given on the command line (None = not given).

    Raises:
        ConfigError: a file that can't be read or parsed, or what `config.resolve` refuses.
    """
    layers = [Layer(FLAG, {key: value for key, value in flags.items() if value is not None and value != ()})]
    layers += environment_layers(environment)
    if root is not None:
        layers += project_layers(root)
    user = user_file(environment)
    if user.is_file():
        layers.append(Layer(str(user), _table(user, ())))
    return resolve(layers)


def environment_layers(environment: Mapping[str, str]) -> list[Layer]:
    """One layer per `AGENTCTX_<OPTION>` variable, so that a bad value is reported by its name."""
    out = []
    for option in fields(RunOptions):
        name = f"AGENTCTX_{option.name.upper()}"
        if environment.get(name):
            out.append(Layer(name, {option.name: environment[name]}, level="environment"))
    return out


def project_layers(root: Path) -> list[Layer]:
    out = []
    own = root / PROJECT_FILE
    if own.is_file():
        out.append(_project_layer(str(own), _table(own, ())))
    project = root / "pyproject.toml"
    if project.is_file():
        table = _table(project, ("tool", "agentctx")) if _mentions_us(project) else {}
        if table:
            out.append(_project_layer(f"{project} [tool.agentctx]", table))
    return out


def _project_layer(name: str, table: dict[str, object]) -> Layer:
    for key in _YOURS:
        if key in table:
            raise ConfigError(
                f"'{key}' in {name}: a repository can't say where its code is sent",
                hint=f"--{key}, AGENTCTX_{key.upper()}, or your own config.toml (see `agentctx config show`)",
            )
    return Layer(name, table)


def user_file(environment: Mapping[str, str]) -> Path:
    folder = environment.get("AGENTCTX_CONFIG_DIR")
    return (_folder(folder) if folder else Path(platformdirs.user_config_dir("agentctx", False))) / "config.toml"


def cache_root(environment: Mapping[str, str]) -> Path:
    """The folder of models, indexes and runs: `AGENTCTX_CACHE_DIR` or the user's cache folder."""
    folder = environment.get("AGENTCTX_CACHE_DIR")
    return _folder(folder) if folder else Path(platformdirs.user_cache_dir("agentctx", False))


def _folder(text: str) -> Path:
    """A folder from a variable: absolute, because git and checks run in other folders than ours."""
    return Path(text).expanduser().absolute()


def _mentions_us(project: Path) -> bool:
    """A pyproject.toml that doesn't name us is not ours to judge (or to parse)."""
    try:
        return b"tool.agentctx" in project.read_bytes()
    except OSError as error:
        raise ConfigError(f"can't read {project}: {error.strerror}") from error


def _table(file: Path, keys: tuple[str, ...]) -> dict[str, object]:
    try:
        table: object = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"can't read {file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not valid TOML: {error}") from error
    for key in keys:
        table = table.get(key, {}) if isinstance(table, dict) else {}
    if not isinstance(table, dict):
        raise ConfigError(f"[{'.'.join(keys)}] in {file} is not a table")
    return {key: value for key, value in table.items() if key not in _TABLES}
