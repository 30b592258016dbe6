"""A server with a model that calls the client's tool for writing files once, then says that it is
done: ``redraft serve-http`` in all but the model."""

from __future__ import annotations

import json
import re
import sys
import threading
from pathlib import Path
from typing import Any

import uvicorn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "server"))

from engine_stand_in import EngineStandIn

from lsp_server.commands.cli.setup import all_snippets
from lsp_server.shared.contract.jobs import CompletionJob
from lsp_server.team.http_server.application import app
from lsp_server.team.http_server.keys import Keys

KEY = "sesame-open"
SUGGESTED = "order_total(order, tax) for order in orders]"
"""What is suggested behind ``totals = [``."""
WRITTEN = "hello from a tool\n"
FILE = "written.txt"
DONE = "Done."
_PATHS = ("filePath", "file_path", "filepath", "path", "absolute_path")
_TEXTS = ("content", "contents", "text")


_WRITERS = ("write", "writefile", "createfile", "createnewfile", "shell", "execcommand")
_EXAMPLES = {"string": "ann", "integer": 3, "number": 3, "boolean": True, "array": [], "object": {}}


def _writer(tools: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the tool that writes a whole file."""
    named = {tool["function"]["name"].lower().replace("_", ""): tool["function"] for tool in tools}
    return next((named[name] for name in _WRITERS if name in named), None)


def _called(tool: dict[str, Any], arguments: dict[str, Any]) -> str:
    call = json.dumps({"name": tool["name"], "arguments": arguments})
    return f"<tool_call>\n{call}\n</tool_call>"


def _examples(tool: dict[str, Any]) -> dict[str, Any]:
    """Return arguments of the types that ``tool`` wants."""
    properties = tool.get("parameters", {}).get("properties", {})
    return {name: _EXAMPLES.get(of.get("type"), "ann") for name, of in properties.items()}


def _suggested(before: str) -> str:
    typed = before.rpartition("totals = [")[2]
    return SUGGESTED[len(typed) :] if SUGGESTED.startswith(typed) else ""


def answer_for(folder: Path) -> Any:
    """Return what the model writes for a job: a call of the tool for files in ``folder``."""

    def answer(job: Any) -> str:
        if isinstance(job, CompletionJob):
            return _suggested(job.prefix)
        if job.text is not None:  # a hole, or a text that goes on
            return _suggested(job.text)
        messages, tools = job.messages or [], job.tools
        if "tool_call" in job.grammar:
            return _called(tools[0]["function"], _examples(tools[0]["function"]))
        if job.grammar:
            return '{"name": "ann", "age": 3}'
        if "SEARCH/REPLACE" in str(messages[:1]):  # aider's format
            return f"{FILE}\n```\n<<<<<<< SEARCH\n=======\n{WRITTEN}>>>>>>> REPLACE\n```\n"
        if any(message["role"] == "tool" for message in messages):
            return DONE
        if (tool := _writer(tools)) is None:
            return _called(tools[0]["function"], _examples(tools[0]["function"])) if tools else DONE
        known = tool["parameters"].get("properties", {})
        shell = f"printf '{WRITTEN[:-1]}\\n' > {folder / FILE}"
        arguments = {name: str(folder / FILE) for name in _PATHS if name in known}
        arguments |= {name: WRITTEN for name in _TEXTS if name in known}
        arguments |= {"cmd": shell} if "cmd" in known else {}
        arguments |= {"command": ["bash", "-c", shell]} if "command" in known else {}
        return f"I write it.\n{_called(tool, arguments)}"

    return answer


def recipe(name: str, url: str) -> str:
    """Return what ``redraft setup --editor`` prints for ``name``, for the server at ``url``."""
    (snippet,) = (each for each in all_snippets() if name in each.names)
    return re.sub(r"\bKEY\b", KEY, snippet.text.replace("http://127.0.0.1:8017", url))


class StandIn:
    """The running server; ``engine.jobs`` says what was asked."""

    def __init__(self, folder: Path, port: int) -> None:
        keys = folder.parent / "keys"
        keys.write_text(f"ann {KEY}\n")
        status = {"takes_tools": True, "max_tokens": 1 << 17}
        self.engine = EngineStandIn(answer_for(folder), **status)
        config = uvicorn.Config(app(self.engine, Keys(keys)), port=port, log_level="warning")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{port}"

    def end(self) -> None:
        """Stop serving."""
        self._server.should_exit = True
        self._thread.join(10)
