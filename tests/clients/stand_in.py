"""A server with a model that calls the client's tool for writing files once, then says that it is
done: ``redraft serve-http`` in all but the model."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import uvicorn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "server"))

from engine_stand_in import EngineStandIn

from lsp_server.shared.contract.jobs import CompletionJob
from lsp_server.team.http_server.application import app
from lsp_server.team.http_server.keys import Keys

KEY = "sesame-open"
SUGGESTED = "order_total(order, tax) for order in orders]"
"""What is suggested behind ``totals = [``."""
WRITTEN = "hello from a tool\n"
FILE = "written.txt"
_PATHS = ("filePath", "file_path", "filepath", "path", "absolute_path")
_TEXTS = ("content", "contents", "text")


def _writer(tools: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the tool that writes a whole file."""
    named = {tool["function"]["name"].lower().replace("_", ""): tool["function"] for tool in tools}
    for name in ("write", "writefile", "createfile", "createnewfile"):
        if name in named:
            return named[name]
    return None


def answer_for(folder: Path) -> Any:
    """Return what the model writes for a job: a call of the tool for files in ``folder``."""

    def answer(job: Any) -> str:
        if isinstance(job, CompletionJob):
            typed = job.prefix.rpartition("totals = [")[2]
            return SUGGESTED[len(typed) :] if SUGGESTED.startswith(typed) else ""
        messages = getattr(job, "messages", None) or []
        tool = _writer(getattr(job, "tools", []))
        if tool is None or any(message["role"] == "tool" for message in messages):
            return "Done."
        known = tool["parameters"].get("properties", {})
        arguments = {name: str(folder / FILE) for name in _PATHS if name in known}
        arguments |= {name: WRITTEN for name in _TEXTS if name in known}
        call = json.dumps({"name": tool["name"], "arguments": arguments})
        return f"I write it.\n<tool_call>\n{call}\n</tool_call>"

    return answer


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
