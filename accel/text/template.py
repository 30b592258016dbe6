"""Chat templates, which are programs of whoever made the model: rendered in jinja2's sandbox, in a
process of its own that may take so much time and memory and no more.

Run as a module, it reads a request as JSON from stdin and writes the answer to
stdout.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from functools import lru_cache
from typing import Any

from accel.python_process import python_command

MOST_SECONDS = 10
"""From start to end: a busy machine starts a process slowly."""
MOST_PROCESSOR_SECONDS = 2
MOST_MEMORY = 1 << 29
"""Bytes of address space."""
MOST_TEXT = 1 << 18
"""Characters of a template, and of what it renders."""


class TemplateFailed(Exception):
    """A template cannot be rendered; the message says why in a few words."""


def render(template: str, message: str, variables: tuple[tuple[str, str], ...]) -> str:
    """A user's message in a template, and the beginning of the answer. ``variables``: what the
    template may use besides. Raises TemplateFailed."""
    return render_messages(template, (("user", message),), variables)


@lru_cache(maxsize=64)
def render_messages(
    template: str, messages: tuple[tuple[str, str], ...], variables: tuple[tuple[str, str], ...]
) -> str:
    """Messages by role and content in a template, and the beginning of the answer. Raises
    TemplateFailed."""
    if len(template) > MOST_TEXT:
        raise TemplateFailed("it is too long")
    request = {
        "template": template,
        "messages": [{"role": role, "content": content} for role, content in messages],
        "variables": dict(variables),
    }
    try:
        done = subprocess.run(
            python_command("accel.text.template"),
            input=json.dumps(request),
            capture_output=True,
            encoding="utf-8",
            timeout=MOST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TemplateFailed("it takes too long") from None
    except OSError as error:
        raise TemplateFailed(f"no process can be started, {error}") from error
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        raise TemplateFailed("it takes too much time or memory") from None
    if "text" not in answer:
        raise TemplateFailed(answer["error"])
    return str(answer["text"])


def _limit() -> None:
    """Bound this process, where the system can: what goes beyond ends it."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (MOST_PROCESSOR_SECONDS, MOST_PROCESSOR_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _render(request: dict[str, Any]) -> dict[str, str]:
    import datetime

    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def raise_exception(message: object) -> None:
        raise TemplateError(str(message))

    def to_json(value: object, indent: int | None = None, **_options: object) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = datetime.datetime.now().strftime
    try:
        text = environment.from_string(request["template"]).render(
            messages=request["messages"],
            add_generation_prompt=True,
            tools=None,
            documents=None,
            **request["variables"],
        )
    except MemoryError:
        return {"error": "it takes too much memory"}
    except Exception as error:  # a template may call anything of its values
        words = " ".join(str(error).split()) or type(error).__name__
        return {"error": words[:200]}
    return {"text": text} if len(text) <= MOST_TEXT else {"error": "it renders too much"}


def main() -> None:
    """Answer one request."""
    request = json.loads(sys.stdin.buffer.read())
    _limit()
    sys.stdout.buffer.write(json.dumps(_render(request)).encode())


if __name__ == "__main__":
    main()
