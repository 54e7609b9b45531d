"""Which module knows a language's imports and name rules. Imported when a repository has files of the language."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from agentctx.repo.resolvers.imported import Imported
from agentctx.repo.resolvers.rules import Rules

if TYPE_CHECKING:
    from tree_sitter import Node

# family -> module:class of its rules; the languages of a family see each other's definitions
FAMILIES: dict[str, str] = {
    "bash": "shell:ShellRules",
    "c": "c:CRules",
    "csharp": "dotnet:CSharpRules",
    "go": "go:GoRules",
    "javascript": "javascript:JavaScriptRules",
    "jvm": "jvm:JvmRules",
    "php": "php:PhpRules",
    "ruby": "ruby:RubyRules",
    "rust": "rust:RustRules",
}
# language -> (family, module:function that reads its import statements)
LANGUAGES: dict[str, tuple[str, str]] = {
    "bash": ("bash", "shell:imports"),
    "c": ("c", "c:imports"),
    "cpp": ("c", "c:imports"),
    "csharp": ("csharp", "dotnet:imports"),
    "go": ("go", "go:imports"),
    "java": ("jvm", "jvm:java_imports"),
    "javascript": ("javascript", "javascript_imports:imports"),
    "kotlin": ("jvm", "jvm:kotlin_imports"),
    "php": ("php", "php:imports"),
    "ruby": ("ruby", "ruby:imports"),
    "rust": ("rust", "rust:imports"),
    "scala": ("jvm", "jvm:scala_imports"),
    "tsx": ("javascript", "javascript_imports:imports"),
    "typescript": ("javascript", "javascript_imports:imports"),
}


@cache
def rules(family: str) -> type[Rules]:
    """The rules of a family."""
    found = _load(FAMILIES[family])
    assert isinstance(found, type)
    assert issubclass(found, Rules)
    return found


@cache
def import_reader(language: str) -> Callable[[Node, bytes], Iterable[Imported]] | None:
    """What reads the language's import statements; None where it has none."""
    return _load(LANGUAGES[language][1]) if language in LANGUAGES else None


def family_of(language: str | None) -> str | None:
    """The family of a language; None where references aren't resolved by `engine`."""
    return LANGUAGES[language][0] if language in LANGUAGES else None


@cache
def config_names() -> frozenset[str]:
    """Names of the build files that some family reads."""
    return frozenset().union(*(rules(family).config_names for family in FAMILIES))


def _load(where: str) -> Callable[..., Iterable[Imported]]:
    module, _, name = where.partition(":")
    found: Callable[..., Iterable[Imported]] = getattr(import_module(f"agentctx.repo.resolvers.{module}"), name)
    return found
