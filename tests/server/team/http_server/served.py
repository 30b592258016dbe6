"""One server process for all tests of this folder, and the model that it serves."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx2
from small_model import SMALL_MODEL

ROOT = Path(__file__).resolve().parents[4]
TOOLS_OF_TEMPLATE = "{%- if tools %}{{ tools | tojson }}{% endif -%}\n"
CONVERSATION = (
    TOOLS_OF_TEMPLATE
    + """{%- for message in messages -%}
{%- if message.role not in ('system', 'user', 'assistant') -%}
{{ raise_exception('an unknown role') }}
{%- endif -%}
# {{ message.role }}: {{ message.content }}
{% endfor -%}
"""
)
IS_EDIT = r"'The code to edit:\n' in (messages[-1]['content'] or '')"
CHAT_TEMPLATE = (
    "{%- if " + IS_EDIT + " -%}" + (SMALL_MODEL / "chat_template.jinja").read_text("utf-8")
    + "{%- else -%}" + CONVERSATION + "{%- endif -%}"
)  # fmt: skip
"""Conversations by role; edits as the small model was trained to make them."""
KEY = "sesame-open"
OTHER_KEY = "another-door"
FEW_KEY = "few-requests"
START_S = 600
CONCURRENT = 4
FUNCTION = "def scale_{0}(value):\n    factor = {0}\n    return value * factor + {0}\n\n\n"
LONG_EDIT: dict[str, Any] = {
    "protocol": 1,
    "urgency": 1,
    "job": {
        "path": "a.py",
        "instruction": "rename value to amount",
        "selection": "".join(map(FUNCTION.format, range(400))),
        "plain": True,
    },
}
"""Several thousand tokens, one forward each."""
SOON_S = 10.0
"""An engine that was freed is free within this; the long edit takes longer by far."""
CLIENT = httpx2.Client(timeout=240)


def chat_model(folder: Path) -> Path:
    """The small model with a chat template."""
    for file in SMALL_MODEL.iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE, encoding="utf-8")
    return folder


@dataclass
class Served:
    """A running ``redraft serve-http``."""

    process: subprocess.Popen[str]
    url: str
    admin: str
    errors: Path
    log: Path

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {KEY}"}

    def post(self, path: str, body: Any, **options: Any) -> httpx2.Response:
        return CLIENT.post(f"{self.url}{path}", json=body, headers=self.headers, **options)

    def get(self, path: str) -> httpx2.Response:
        return CLIENT.get(f"{self.url}{path}", headers=self.headers)

    def events(self, path: str, body: Any) -> list[tuple[str, Any]]:
        """All events of a stream, by name and data."""
        with stream(self.url, path, body) as response:
            assert response.status_code == 200, response.read()
            return list(events_of(response.iter_lines()))

    def end(self) -> int:
        """SIGTERM, and the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def metric(server: Served, name: str) -> int:
    """A number of the admin address."""
    text = CLIENT.get(f"{server.admin}/metrics").text
    line = next(line for line in text.splitlines() if line.startswith(f"redraft_{name} "))
    return int(line.split()[1])


def wait_until_free(server: Served) -> None:
    """Until the engine has nothing to do, which has to be soon."""
    started = time.monotonic()
    while metric(server, "engine_queue") or metric(server, "requests_running"):
        assert time.monotonic() - started < SOON_S


@contextmanager
def stream(url: str, path: str, body: Any, key: str = KEY) -> Iterator[httpx2.Response]:
    headers = {"authorization": f"Bearer {key}"}
    with CLIENT.stream("POST", f"{url}{path}", json=body, headers=headers) as response:
        yield response


def events_of(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    """Server-sent events; those without a name are called ``message``."""
    name = "message"
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            text = line.removeprefix("data: ")
            yield name, text if text == "[DONE]" else json.loads(text)
        elif not line:
            name = "message"


@contextmanager
def serving(folder: Path, model: Path, *options: str) -> Iterator[Served]:
    """A server with its state in ``folder``, until the block ends."""
    keys = folder / "keys"
    keys.write_text(f"ann {KEY}\nben {OTHER_KEY}\nfew {FEW_KEY}\n", encoding="utf-8")
    errors = folder / "stderr"
    environment = {
        **os.environ,
        "XDG_STATE_HOME": str(folder / "state"),
        "REDRAFT_LOG_DIR": str(folder / "log"),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "lsp_server", "serve-http", "--keys", str(keys)]
    command += ["--model", str(model), "--admin", "127.0.0.1:0", *options]
    command += ["--concurrent", str(CONCURRENT)]
    with errors.open("w") as stderr:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment, cwd=folder
        )
        try:
            assert process.stdout is not None
            line = first_line(process.stdout)
            assert line, errors.read_text()
            told = json.loads(line)
            log = folder / "log" / "http-server.log"
            yield Served(process, told["url"], told["admin"], errors, log)
        finally:
            process.kill()
            process.wait()


def first_line(output: IO[str]) -> str:
    """The first line of a process; the test's own time limit bounds the wait."""
    return output.readline()
