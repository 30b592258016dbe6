"""Secrets in open documents reach neither the engine process nor an answer, by any message.

Everything that the server writes is looked through: frames to the engine (prompts, buffers of the
index, what was accepted) and messages to the editor.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from planted_secrets import SECRET_PATHS, schemes_of, token, word
from seeds import Amount

from lsp_server.editor.daemon.connection import new_server
from lsp_server.editor.hub.hub import Hub
from lsp_server.engine.client import EngineClient
from lsp_server.shared.contract.jobs import JobResult, Span
from lsp_server.shared.settings import read_settings
from lsp_server.text.documents.allowed_files import AllowedFiles


class EngineProcess:
    """Stands for the engine process: keeps every frame and answers at once."""

    alive, pid, back_off_s, deaths = True, 1, 0.0, 0

    def __init__(self, engine: EngineClient) -> None:
        self.frames: list[dict[str, Any]] = []
        self._engine = engine

    def send(self, frame: dict[str, Any]) -> bool:
        self.frames.append(json.loads(json.dumps(frame)))
        if frame["op"] in ("complete", "edit", "prefill"):
            text = frame["job"].get("selection", "value").replace("A=1", "C=1")
            result = asdict(JobResult(text, [Span(text, "model")], 1, 1, 0.1, 0.0, {}, "stop"))
            answer = {"event": "result", "id": frame["id"], "result": result, "forward_s": 0.0}
            asyncio.get_running_loop().call_soon(self._engine._receive, answer)
        return True

    def forgive(self) -> None: ...
    def kill(self) -> None: ...


class Indexer:
    """Stands for the indexer process."""

    pid = None
    workspaces: ClassVar[dict[Any, Any]] = {}

    def find(self, folder: str, model: str) -> None: ...
    def open_workspace(self, folder: str, model: str, options: dict[str, Any]) -> None: ...
    def close_workspace(self, folder: str) -> None: ...
    def refresh(self, folder: str, paths: list[str]) -> None: ...
    def retry(self, model: str) -> None: ...
    def set_busy(self, busy: bool) -> None: ...


MODEL = {"model": {"path": "/models/one"}}
"""The same for the server and for what stands for its engine process, whatever the user chose."""
ANSWER_S = 60.0
"""A busy machine may hold an answer up; what is tested is what stands in it."""


class Editor:
    """One editor on a server whose processes are stood for."""

    def __init__(self, folder: Path, settings: dict[str, Any] | None = None) -> None:
        self.folder = folder
        self.written = b""
        hub = Hub(allowed=AllowedFiles(folder.parent / "allowed.json"))
        hub.indexer = Indexer()  # type: ignore[assignment]
        self._settings = {**MODEL, **(settings or {})}
        engine = hub.engine(read_settings(self._settings).settings)
        engine.status = replace(engine.status, state="ready")
        self.engine = EngineProcess(engine)
        engine._child = self.engine  # type: ignore[assignment]
        self._server = new_server(hub)
        self._server.protocol.set_writer(self)  # type: ignore[arg-type]
        self._ids = 0

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None: ...

    async def start(self) -> None:
        uri = self.folder.as_uri()
        capabilities = {"textDocument": {"inlineCompletion": {}, "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": [""]}},
            "resolveSupport": {"properties": ["edit"]}, "dataSupport": True}}}  # fmt: skip
        await self.ask("initialize", {
            "processId": None, "rootUri": uri, "capabilities": capabilities,
            "workspaceFolders": [{"uri": uri, "name": "w"}],
            "initializationOptions": {"settings": self._settings}})  # fmt: skip
        self.tell("initialized", {})
        await asyncio.sleep(0.01)

    def tell(self, method: str, params: Any) -> None:
        self._receive({"method": method, "params": params})

    def _receive(self, message: dict[str, Any]) -> None:
        self._server.protocol.receive(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def ask(self, method: str, params: Any) -> Any:
        """The result, or the error's message."""
        self._ids += 1
        seen = len(self.written)
        self._receive({"id": self._ids, "method": method, "params": params})
        limit = time.monotonic() + ANSWER_S
        while time.monotonic() < limit:
            for part in self.written[seen:].split(b"Content-Length: ")[1:]:
                message = json.loads(part.partition(b"\r\n\r\n")[2])
                if message.get("id") == self._ids and "method" not in message:
                    return message.get("result", message.get("error", {}).get("message"))
            await asyncio.sleep(0.001)
        raise AssertionError(f"{method} was not answered")

    def open(self, uri: str, text: str, language: str = "python") -> None:
        item = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": item})

    def insert(self, uri: str, line: int, text: str, version: int = 2) -> None:
        place = {"line": line, "character": 0}
        change = {"range": {"start": place, "end": place}, "text": text}
        identifier = {"uri": uri, "version": version}
        self.tell(
            "textDocument/didChange", {"textDocument": identifier, "contentChanges": [change]}
        )

    def shut(self, uri: str) -> None:
        self.tell("textDocument/didClose", {"textDocument": {"uri": uri}})

    async def complete(self, uri: str, line: int = 0) -> list[Any]:
        place = {"line": line, "character": 0}
        params = {"textDocument": {"uri": uri}, "position": place, "context": {"triggerKind": 1}}
        answer = await self.ask("textDocument/inlineCompletion", params)
        return list(answer["items"])

    async def edit(self, uri: str, end: int, **more: Any) -> Any:
        span = {"start": {"line": 0, "character": 0}, "end": {"line": end, "character": 0}}
        params = {"uri": uri, "range": span, "instruction": "rename A to C", **more}
        return await self.ask("redraft/edit", params)

    @property
    def sent(self) -> str:
        return json.dumps(self.engine.frames)

    def sent_for_others(self, path: str) -> str:
        """What was sent but for jobs of the document at ``path``, whose own text they hold. A busy
        machine reads it while it is open, at any time."""
        own = [one for one in self.engine.frames if one.get("job", {}).get("path") == path]
        return json.dumps([one for one in self.engine.frames if one not in own])


def secret_lines(value: str) -> list[str]:
    return [line for line in value.splitlines() if not line.startswith("-----")]


async def plant(editor: Editor, generator: random.Random) -> list[str]:
    """Open one document with a secret, use it in every way, and close it. Gives the secret."""
    work = editor.folder.as_posix()
    if generator.random() < 0.5:
        path = generator.choice(SECRET_PATHS).format(work=work)
        uri = generator.choice(list(schemes_of(path)))
        value = f"plum{word(generator, 20)}"
        editor.open(uri, f"a = 1\nseed = {value}\n\n")
    else:
        uri = f"file://{work}/src/m{word(generator, 8)}.py"
        value = token(generator)[1]
        if generator.random() < 0.5:
            editor.open(uri, f"a = 1\nkey = '''{value}'''\n\n")
        else:
            editor.open(uri, "a = 1\n\n\n")
            assert await editor.complete(uri, 2)
            editor.insert(uri, 1, f"key = '''{value}'''\n")
    assert await editor.complete(uri, 0) == [], uri
    place = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 0}}
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 2, "character": 0}}
    assert "held back" in await editor.ask("redraft/explain", place)
    assert "select the lines" in await editor.edit(uri, 0)
    editor.tell("redraft/prepareEdit", {"textDocument": {"uri": uri}, "range": span})
    editor.tell("redraft/cursor", place)
    actions = {"textDocument": {"uri": uri}, "range": span, "context": {"diagnostics": []}}
    titles = [one["title"] for one in await editor.ask("textDocument/codeAction", actions)]
    assert titles[-1] == "Redraft: allow this file"
    status = await editor.ask("redraft/status", {"textDocument": {"uri": uri}})
    assert uri in [one["uri"] for one in status["heldBack"]]
    assert "allowFile" in status["remedy"]
    assert await editor.complete(f"file://{work}/shown.py", 1)
    editor.insert(f"file://{work}/shown.py", 0, f"# {word(generator, 12)}\n")
    editor.shut(uri)
    return secret_lines(value)


async def plant_many(folder: Path, count: int, seed: int) -> None:
    generator = random.Random(seed)
    editor = Editor(folder, {"log": {"level": "debug", "sourceText": True}})
    await editor.start()
    editor.open(f"{folder.as_uri()}/shown.py", "import helper\n\n")
    editor.open(f"{folder.as_uri()}/helper.py", "def pears_for_all():\n    return 1\n")
    values: list[str] = []
    for _ in range(count):
        values += await plant(editor, generator)
    assert "pears_for_all" in editor.sent, "open files reach prompts"
    told = editor.written.decode()
    assert [value for value in values if value in editor.sent or value in told] == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_forty_planted_secrets_are_found_nowhere(
    folder: Path, caplog: pytest.LogCaptureFixture, amount: Amount
) -> None:
    count = amount(40, 500)
    seed = random.randrange(1 << 32)
    print("seed", seed)
    caplog.set_level("DEBUG")
    asyncio.run(plant_many(folder, count, seed))
    assert [one for one in caplog.records if "plum" in one.getMessage()] == []


async def test_an_edit_of_a_secret_is_told_the_selection_alone_and_warns(folder: Path) -> None:
    editor = Editor(folder, {"model": {"path": "/models/other"}})
    await editor.start()
    uri = f"{folder.as_uri()}/.env"
    editor.open(uri, "A=1\nB=plumsecret\n", "dotenv")
    answer = await editor.edit(uri, 1, instruction="make it better")
    assert answer["text"] == "C=1"
    assert "held back" in answer["warning"]
    (asked,) = (one["job"] for one in editor.engine.frames if one["op"] == "edit")
    assert "A=1" in asked["selection"]
    assert "plumsecret" not in editor.sent
    assert "select" in await editor.edit(uri, 1, withComment=True)


async def test_an_allowed_file_is_completed_and_stays_out_of_others(folder: Path) -> None:
    editor = Editor(folder)
    await editor.start()
    uri = f"{folder.as_uri()}/.env"
    editor.open(uri, "A=1\nB=plumsecret\n")
    editor.open(f"{folder.as_uri()}/shown.py", "import helper\n\n")
    command = {"command": "redraft.allowFile", "arguments": [{"uri": uri}]}
    assert await editor.ask("workspace/executeCommand", command) == {"reason": ""}
    assert await editor.complete(uri, 2)
    asked = [one for one in editor.engine.frames if one["op"] == "complete"]
    assert "plumsecret" in asked[-1]["job"]["prefix"]
    assert asked[-1]["job"]["workspace"] == ""
    editor.engine.frames.clear()
    assert await editor.complete(f"{folder.as_uri()}/shown.py", 1)
    assert "plumsecret" not in editor.sent
    back = {"command": "redraft.holdBackFile", "arguments": [{"uri": uri}]}
    assert "secret" in (await editor.ask("workspace/executeCommand", back))["reason"]
    assert await editor.complete(uri, 2) == []
    assert "which file" in await editor.ask(
        "workspace/executeCommand", {"command": "redraft.allowFile", "arguments": []}
    )


@pytest.mark.parametrize("wanted", [False, True])
async def test_an_ignored_file_counts_for_itself_alone(folder: Path, wanted: bool) -> None:
    editor = Editor(folder, {"index": {"ignoredOpenFiles": wanted}})
    (folder / ".gitignore").write_text("build/\n")
    await editor.start()
    uri = f"{folder.as_uri()}/build/x.py"
    editor.open(uri, "def plum_of_build():\n    return 1\n\n")
    editor.open(f"{folder.as_uri()}/shown.py", "import helper\n\n")
    assert await editor.complete(f"{folder.as_uri()}/shown.py", 1)
    assert ("plum_of_build" in editor.sent_for_others("build/x.py")) is wanted
    assert await editor.complete(uri, 2)
    asked = [one for one in editor.engine.frames if one["op"] == "complete"]
    assert "plum_of_build" in asked[-1]["job"]["prefix"]


async def test_a_file_that_becomes_ignored_leaves_the_others(folder: Path) -> None:
    editor = Editor(folder)
    await editor.start()
    uri = f"{folder.as_uri()}/build/x.py"
    editor.open(uri, "def plum_of_build():\n    return 1\n\n")
    editor.open(f"{folder.as_uri()}/shown.py", "import helper\n\n")
    assert await editor.complete(f"{folder.as_uri()}/shown.py", 1)
    assert "plum_of_build" in editor.sent_for_others("build/x.py")
    (folder / ".gitignore").write_text("build/\n")
    saved = {"textDocument": {"uri": f"{folder.as_uri()}/.gitignore"}}
    editor.tell("textDocument/didSave", saved)
    editor.engine.frames.clear()
    editor.insert(f"{folder.as_uri()}/shown.py", 0, "import other\n")
    assert await editor.complete(f"{folder.as_uri()}/shown.py", 1)
    assert {"op": "set_buffer", "folder": str(folder), "path": "build/x.py", "text": ""} in (
        editor.engine.frames
    )
    assert "plum_of_build" not in editor.sent_for_others("build/x.py")


@pytest.mark.parametrize("how", ["redraft/cursor", "a code action"])
async def test_an_opened_document_is_read_and_none_that_is_held_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """First from its start, then where the cursor is said to be."""
    for name in ("OPENED_S", "REST_S"):
        monkeypatch.setattr(f"lsp_server.editor.completion.provider.{name}", 0.01)
    value = f"ghp_{word(random.Random(8), 36)}"
    editor = Editor(folder)
    await editor.start()

    async def read(count: int) -> list[dict[str, Any]]:
        while True:
            frames = [one for one in editor.engine.frames if one["op"] == "prefill"]
            if len(frames) >= count:
                return [frame["job"] for frame in frames]
            await asyncio.sleep(0.001)

    uri, hidden = f"{folder.as_uri()}/a.py", f"{folder.as_uri()}/hidden.py"
    editor.open(hidden, f"key = '{value}'\n")
    editor.open(uri, "a = 1\n\nb = 2\n")
    assert [(job["path"], job["opening"]) for job in await read(1)] == [("a.py", True)]
    for one in (hidden, uri):
        place = {"line": 1, "character": 0}
        document = {"textDocument": {"uri": one}}
        if how == "redraft/cursor":
            editor.tell(how, {**document, "position": place})
        else:
            span = {"range": {"start": place, "end": place}, "context": {"diagnostics": []}}
            await editor.ask("textDocument/codeAction", {**document, **span})
    jobs = await read(2)
    assert [job["path"] for job in jobs] == ["a.py", "a.py"]
    assert (jobs[1]["prefix"], jobs[1]["suffix"]) == ("a = 1\n", "\nb = 2\n")
    assert value not in editor.sent


@pytest.mark.parametrize("secret", [False, True])
async def test_the_prompt_that_is_computed_when_the_cursor_rests_holds_no_secret(
    folder: Path, monkeypatch: pytest.MonkeyPatch, secret: bool
) -> None:
    monkeypatch.setattr("lsp_server.editor.completion.provider.REST_S", 0.02)
    value = f"ghp_{word(random.Random(7), 36)}"
    editor = Editor(folder)
    await editor.start()
    uri, other = f"{folder.as_uri()}/a.py", f"{folder.as_uri()}/b.py"
    editor.open(uri, "a = 1\n\n")
    editor.open(other, "b = 1\n\n")
    editor.insert(uri, 1, "b = 2\n")
    editor.insert(uri, 1, f"key = '{value if secret else 'plain'}'\n", 3)
    editor.insert(other, 1, "c = 2\n")
    prefilled: list[str] = []
    while "b.py" not in prefilled:
        await asyncio.sleep(0.001)
        frames = editor.engine.frames
        prefilled = [one["job"]["path"] for one in frames if one["op"] == "prefill"]
    assert prefilled == (["b.py"] if secret else ["a.py", "b.py"])
    assert value not in editor.sent
