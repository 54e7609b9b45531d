"""The chat template, rendered once around one system and one user message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentctx.errors import ModelUnavailable, UnavailableError
from agentctx.prompt import ChatFrame

_SYSTEM, _USER = "@@S@@", "@@U@@"


def chat_frame(tokenizer_config: Mapping[str, Any]) -> ChatFrame:
    """The frame of `chat_template`; an empty one when there is no template.

    Templates that refuse a system role get the system text in front of the user's.

    Raises:
        UnavailableError: jinja2 is missing.
        ModelUnavailable: the template can't be rendered, or does not show both messages.
    """
    template = _template_text(tokenizer_config.get("chat_template"))
    if template is None:
        return ChatFrame()
    try:
        return _split(render(template, tokenizer_config, with_system=True))
    except ModelUnavailable:
        return _split(render(template, tokenizer_config, with_system=False))


def _template_text(template: object) -> str | None:
    """A template is a text, or a list of named ones of which 'default' counts."""
    if isinstance(template, list):
        named = {item.get("name"): item.get("template") for item in template if isinstance(item, Mapping)}
        template = named.get("default")
    return template if isinstance(template, str) and template else None


def _split(text: str) -> ChatFrame:
    before, system, rest = text.partition(_SYSTEM)
    middle, user, after = rest.partition(_USER)
    if not system or not user:
        raise ModelUnavailable("the chat template does not show the system message followed by the user's")
    return ChatFrame(before, middle, after)


def render(template: str, tokenizer_config: Mapping[str, Any], *, with_system: bool) -> str:
    jinja = _jinja()
    # No strftime_now: with it some templates write today's date, and prompts would differ from day to day.
    environment = jinja.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = _refuse
    system, user = {"role": "system", "content": _SYSTEM}, {"role": "user", "content": _USER}
    messages = [system, user] if with_system else [{"role": "user", "content": f"{_SYSTEM}\n\n{_USER}"}]
    names = {name: _token_text(tokenizer_config.get(name)) for name in ("bos_token", "eos_token")}
    try:
        text: str = environment.from_string(template).render(
            messages=messages, add_generation_prompt=True, tools=None, **names
        )
    except Exception as error:  # a template is foreign code and may raise anything
        raise ModelUnavailable(f"the chat template can't be rendered: {error}") from error
    return text


def _token_text(token: object) -> str:
    if isinstance(token, Mapping):
        token = token.get("content")
    return token if isinstance(token, str) else ""


class _Refused(Exception):
    """Raised by a template through `raise_exception`."""


def _refuse(message: str) -> None:
    raise _Refused(message)


def _jinja() -> Any:
    try:
        import jinja2
        import jinja2.sandbox
    except ImportError as error:
        raise UnavailableError(
            "rendering a chat template needs jinja2", hint="pip install 'agentctx[torch]'"
        ) from error
    return jinja2
