"""Renders chat templates, which are programs by strangers, in jinja2's sandbox, in little memory
and little time. Run as a module.

Requests and answers are lines of JSON on stdin and stdout; a request that takes too much ends the
process.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from accel.text.marked_text import is_shown, of_message, pieces_of
from accel.text.template_environment import TemplateEnvironment
from operating_system.processes import limit_memory, limit_time

MOST_PROCESSOR_SECONDS = 2
MOST_MEMORY = 1 << 29
"""Bytes of address space."""
MOST_TEXT = 1 << 18
"""Characters that a template may add to its messages."""
_KNOWN_ROLES = ("system", "developer", "user", "assistant", "tool", "function", "ipython")


def _marked(value: Any, number: int) -> Any:
    """Return ``value`` with all its texts marked as those of the message ``number``."""
    if isinstance(value, str):
        return of_message(value, number)
    if isinstance(value, list):
        return [_marked(each, number) for each in value]
    if isinstance(value, dict):
        return {of_message(name, number): _marked(each, number) for name, each in value.items()}
    return value


def _message(number: int, message: dict[str, Any]) -> dict[str, Any]:
    # Templates make control tokens of roles.
    content = {"role": message["role"]} if message["role"] in _KNOWN_ROLES else {}
    return {name: _marked(value, number) for name, value in message.items()} | content


def _leaves_out(messages: list[dict[str, Any]], text: str) -> bool:
    """Return if nothing of a message is in ``text``, but for thinking of long ago."""
    return any(
        message["content"].rpartition("</think>")[2].strip() and not is_shown(number, text)
        for number, message in enumerate(messages)
    )


def _render(environment: TemplateEnvironment, request: dict[str, Any]) -> dict[str, Any]:
    messages = [_message(number, each) for number, each in enumerate(request["messages"])]
    tools = _marked(request["tools"], len(messages)) or None
    most = MOST_TEXT + len(json.dumps([request["messages"], request["tools"]]))
    try:
        text = environment.from_string(request["template"]).render(
            messages=messages,
            add_generation_prompt=True,
            tools=tools,
            documents=None,
            **request["variables"],
        )
    except MemoryError:
        return {"error": "it takes too much memory"}
    except Exception as error:  # a template may call anything of its values
        words = " ".join(str(error).split()) or type(error).__name__
        return {"error": words[:200]}
    if _leaves_out(request["messages"], text):
        return {"error": "it leaves a message out"}
    return {"pieces": pieces_of(text)} if len(text) <= most else {"error": "it renders too much"}


def main() -> None:
    """Answer requests until there are no more."""
    limit_memory(MOST_MEMORY)
    environment = TemplateEnvironment()
    for line in sys.stdin.buffer:
        limit_time(MOST_PROCESSOR_SECONDS)
        answer = _render(environment, json.loads(line))
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
