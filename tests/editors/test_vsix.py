"""The package that users install in VS Code: what is in it, and that it agrees with itself and with the docs."""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentctx import __version__
from tests.trees import ROOT

EXTENSION = ROOT / "vscode-ext"

FILES = {
    "[Content_Types].xml",
    "extension.vsixmanifest",
    "extension/LICENSE.txt",
    "extension/ThirdPartyNotices.txt",
    "extension/package.json",
    "extension/readme.md",
    "extension/out/extension.js",
}
LIBRARIES = {"vscode-languageclient", "vscode-languageserver-protocol", "vscode-jsonrpc", "minimatch", "semver"}


@pytest.fixture(scope="session")
def vsix() -> Iterator[zipfile.ZipFile]:
    """What `npm run package` made."""
    file = EXTENSION / "agentctx.vsix"
    assert file.is_file(), "there is no vscode-ext/agentctx.vsix; make test-editors builds it"
    with zipfile.ZipFile(file) as archive:
        yield archive


@pytest.fixture(scope="session")
def manifest(vsix: zipfile.ZipFile) -> dict[str, Any]:
    """The package.json that is inside."""
    found = json.loads(vsix.read("extension/package.json"))
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="session")
def bundle(vsix: zipfile.ZipFile) -> str:
    return vsix.read("extension/out/extension.js").decode()


def test_only_what_is_needed_is_inside(vsix: zipfile.ZipFile) -> None:
    assert set(vsix.namelist()) == FILES
    assert vsix.read("extension/LICENSE.txt") == (ROOT / "LICENSE").read_bytes()


def test_the_manifest_names_what_is_inside(vsix: zipfile.ZipFile, manifest: dict[str, Any]) -> None:
    assert f"extension/{manifest['main'].removeprefix('./')}" in vsix.namelist()
    assert manifest["version"] == __version__
    assert {"onLanguage:python", "workspaceContains:agentctx.toml"} == set(manifest["activationEvents"])
    assert manifest["capabilities"]["untrustedWorkspaces"]["supported"] == "limited"
    assert manifest.get("extensionDependencies", []) == []


def test_no_api_is_used_that_the_oldest_promised_editor_lacks(manifest: dict[str, Any]) -> None:
    types = manifest["devDependencies"]["@types/vscode"]
    assert manifest["engines"]["vscode"] == f"^{types}"
    installed = json.loads((EXTENSION / "node_modules/@types/vscode/package.json").read_text(encoding="utf-8"))
    assert installed["version"] == types


def test_the_commands_of_the_manifest_are_those_of_the_code(manifest: dict[str, Any], bundle: str) -> None:
    commands = {entry["command"] for entry in manifest["contributes"]["commands"]}
    registered = set(re.findall(r"""registerCommand\(\s*["'`](agentctx\.\w+)["'`]""", bundle))
    assert commands == registered
    assert {entry["command"] for menu in manifest["contributes"]["menus"].values() for entry in menu} <= commands


@pytest.mark.parametrize("text", ["vscode-ext/README.md", "docs/editors.md"])
def test_every_setting_and_command_is_documented(text: str, manifest: dict[str, Any]) -> None:
    page = (ROOT / text).read_text(encoding="utf-8")
    contributes = manifest["contributes"]
    settings = contributes["configuration"]["properties"]
    assert set(re.findall(r"^\| `(agentctx\.[\w.]+)`", page, re.MULTILINE)) == set(settings)
    assert [entry["title"] for entry in contributes["commands"] if entry["title"] not in page] == []
    assert [name for name, about in settings.items() if not about.keys() & {"description", "markdownDescription"}] == []


def test_the_settings_of_the_manifest_are_those_of_the_code(manifest: dict[str, Any]) -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in sorted((EXTENSION / "src").glob("*.ts")))
    read = {f"agentctx.{name}" for name in re.findall(r"""\.get(?:<[^>]*>)?\('(\w+)',""", code)}
    by_the_client_library = {"agentctx.trace.server"}
    assert read | by_the_client_library == set(manifest["contributes"]["configuration"]["properties"])


def test_the_bundle_needs_nothing_beside_it(bundle: str) -> None:
    wanted = {name.removeprefix("node:") for name in re.findall(r"""\brequire\(\s*["']([^"']+)["']\s*\)""", bundle)}
    script = "console.log(JSON.stringify(require('node:module').builtinModules))"
    builtin = json.loads(subprocess.run(["node", "-e", script], capture_output=True, check=True).stdout)
    assert "vscode" in wanted
    assert sorted(wanted - {"vscode", *builtin}) == []
    assert "sourceMappingURL" not in bundle


def test_the_bundle_is_valid(vsix: zipfile.ZipFile, tmp_path: Path) -> None:
    file = Path(vsix.extract("extension/out/extension.js", tmp_path))
    subprocess.run(["node", "--check", str(file)], check=True)


def test_nothing_tells_where_it_was_built(vsix: zipfile.ZipFile) -> None:
    traces = [str(ROOT).encode(), str(Path.home()).encode(), b"file:///"]
    found = [(name, trace) for name in vsix.namelist() for trace in traces if trace in vsix.read(name)]
    assert found == []


def test_the_licenses_of_bundled_libraries_are_inside(vsix: zipfile.ZipFile) -> None:
    notices = vsix.read("extension/ThirdPartyNotices.txt").decode()
    named = re.findall(r"^== (\S+) \S+ \([\w.-]+\)$", notices, re.MULTILINE)
    assert set(named) >= LIBRARIES
    assert named == sorted(named)
    assert notices.count("Permission is hereby granted") >= len(LIBRARIES) - 2  # MIT; the others are ISC and BlueOak


def test_the_types_hold() -> None:
    done = subprocess.run(["npm", "run", "--silent", "check"], cwd=EXTENSION, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
