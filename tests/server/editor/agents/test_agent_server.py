"""The protocol, message by message: versions before and since its change of July 2026. A real
process is asked by the SDK's own client in ``tests/e2e/test_agents.py``."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from agent_workspace import EDGE, SHAPES, SNIPPET
from daemon_stand_in import DaemonStandIn

from lsp_server.editor.agents import server
from lsp_server.editor.agents.agent_files import AgentFiles
from lsp_server.editor.agents.server import LEGACY, MODERN, AgentServer
from lsp_server.editor.agents.tools import AgentTools

MODES = ["legacy", "modern"]
META = "io.modelcontextprotocol/"


class Client:
    """A client with its roots, and the server."""

    def __init__(self, workspace: Path, mode: str, roots: list[Path] | None = None) -> None:
        self.mode, self.roots = mode, roots
        self.sent: list[dict[str, Any]] = []
        self._answers: dict[Any, asyncio.Future[Any]] = {}
        files = AgentFiles([workspace])
        self.daemon = DaemonStandIn()
        tools = AgentTools(files, self.daemon)  # type: ignore[arg-type]
        self.server = AgentServer(self._heard, lambda: (files, tools))

    @property
    def _listed(self) -> dict[str, Any]:
        return {"roots": [{"uri": root.as_uri()} for root in self.roots or ()]}

    def _heard(self, message: dict[str, Any]) -> None:
        message = json.loads(json.dumps(message))
        self.sent.append(message)
        if message.get("method") == "roots/list":
            self._send({"id": message["id"], "result": self._listed})
        elif message.get("id") in self._answers:
            self._answers[message["id"]].set_result(message)

    def _send(self, message: dict[str, Any]) -> None:
        self.server.receive(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the answer to a request."""
        number = len(self._answers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        if self.mode == "modern":
            capabilities = {} if self.roots is None else {"roots": {}}
            told = {"protocolVersion": MODERN, "clientCapabilities": capabilities}
            own = {f"{META}{name}": value for name, value in told.items()}
            params["_meta"] = {**own, **params.get("_meta", {})}
        self._send({"id": number, "method": method, "params": params})
        answer: dict[str, Any] = await asyncio.wait_for(self._answers[number], 60)
        return answer

    async def begin(self) -> None:
        if self.mode == "legacy":
            capabilities = {} if self.roots is None else {"roots": {"listChanged": True}}
            asked = {"protocolVersion": LEGACY[0], "capabilities": capabilities}
            answer = await self.ask("initialize", **asked)
            assert answer["result"]["protocolVersion"] == LEGACY[0]
            self._send({"method": "notifications/initialized"})
        else:
            answer = await self.ask("server/discover")
            assert answer["result"]["supportedVersions"] == [MODERN]
        assert answer["result"]["instructions"]

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        answer = (await self.ask("tools/call", name=name, arguments=arguments))["result"]
        if self.mode == "modern" and self.roots is not None:
            assert answer["resultType"] == "input_required"
            assert answer["inputRequests"]["roots"]["method"] == "roots/list"
            responses = {"roots": self._listed}
            more = {"name": name, "arguments": arguments, "inputResponses": responses}
            answer = (await self.ask("tools/call", **more))["result"]
        assert self.mode == "legacy" or answer["resultType"] == "complete"
        result: dict[str, Any] = answer
        return result


async def begun(workspace: Path, mode: str, roots: list[Path] | None = None) -> Client:
    """Return a client whose session has begun."""
    client = Client(workspace, mode, roots)
    await client.begin()
    return client


def apply_arguments(**more: Any) -> dict[str, Any]:
    return {"path": "shapes.py", "snippet": SNIPPET, **more}


@pytest.mark.parametrize("mode", MODES)
async def test_tools_are_listed_with_what_they_may_do(workspace: Path, mode: str) -> None:
    answer = await (await begun(workspace, mode)).ask("tools/list")
    by_name = {tool["name"]: tool for tool in answer["result"]["tools"]}
    assert set(by_name) == {"apply_edit", "edit_file", "rename_symbol", "find_similar"}
    for name, tool in by_name.items():
        assert tool["description"]
        assert tool["inputSchema"]["additionalProperties"] is False
        hints = tool["annotations"]
        assert hints["readOnlyHint"] == (name == "find_similar")
        assert hints["openWorldHint"] is False
        if name != "find_similar":
            assert hints["destructiveHint"] is True
            assert hints["idempotentHint"] == (name == "apply_edit")
            assert {"preview", "hash"} <= set(tool["inputSchema"]["properties"])


@pytest.mark.parametrize("mode", MODES)
async def test_an_edit_is_called(workspace: Path, mode: str) -> None:
    client = await begun(workspace, mode)
    preview = await client.call("apply_edit", **apply_arguments(preview=True))
    known = preview["structuredContent"]["hash"]
    assert known in preview["content"][0]["text"]
    assert (workspace / "shapes.py").read_text() == SHAPES
    answer = await client.call("apply_edit", **apply_arguments(hash=known))
    assert answer["isError"] is False
    assert answer["structuredContent"]["written"] is True
    assert "+    return width + height" in answer["content"][0]["text"]
    assert (workspace / "shapes.py").read_text() == EDGE


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown field": (apply_arguments(wanted=1), "wanted: unknown"),
    "no path": ({"snippet": "a"}, "path: is missing"),
    "no snippet": ({"path": "shapes.py"}, "send one of: a snippet;"),
    "a snippet and a text": (apply_arguments(old_string="a", new_string="b"), "send one of"),
    "an old text alone": ({"path": "shapes.py", "old_string": "a"}, "go together"),
    "two paths": (apply_arguments(file_path="uses.py"), "file_path: differs from path"),
    "a path that is none": (apply_arguments(path=1), "path: expected a string"),
    "a file outside": (apply_arguments(path="../a.py"), "outside of the folders"),
    "a snippet of nothing there": (apply_arguments(snippet="plum\npear\n"), "fit several places"),
    "others that are no files": (apply_arguments(others=["uses.py"]), "expected a list"),
    "a hash that is unknown": (apply_arguments(hash="0"), "no such preview"),
}


@pytest.mark.parametrize("case", WRONG)
async def test_what_is_wrong_is_an_answer(workspace: Path, case: str) -> None:
    given, said = WRONG[case]
    client = await begun(workspace, "legacy")
    answer = await client.call("apply_edit", **given)
    assert answer["isError"] is True
    assert said in answer["content"][0]["text"]
    assert answer["structuredContent"]["refused"] == answer["content"][0]["text"]


@pytest.mark.parametrize("mode", MODES)
async def test_what_is_no_request_of_the_protocol_is_an_error(workspace: Path, mode: str) -> None:
    client = await begun(workspace, mode)
    unknown = await client.ask("tools/call", name="delete_all", arguments={})
    assert "no tool delete_all" in unknown["error"]["message"]
    assert (await client.ask("resources/list"))["error"]["code"] == -32601
    assert (await client.ask("ping"))["result"] == {}
    client.server.receive(b"{")
    client.server.receive(b"[]")
    assert [told["error"]["code"] for told in client.sent[-2:]] == [-32700, -32600]
    client.mode = "later"
    later = await client.ask("tools/list", _meta={f"{META}protocolVersion": "2030-01-01"})
    assert later["error"]["code"] == -32022


@pytest.mark.parametrize("mode", MODES)
async def test_roots_narrow_the_folders_and_may_change(workspace: Path, mode: str) -> None:
    (workspace / "sub").mkdir()
    (workspace / "sub" / "shapes.py").write_text(SHAPES)
    client = await begun(workspace, mode, [workspace / "sub"])
    refused = await client.call("apply_edit", **apply_arguments())
    assert refused["isError"]
    assert "outside of the folders" in refused["content"][0]["text"]
    inside = await client.call("apply_edit", **apply_arguments(path="sub/shapes.py"))
    assert not inside["isError"], inside["content"][0]["text"]
    client.roots = [workspace.parent]
    answer = await client.call("apply_edit", **apply_arguments())
    assert not answer["isError"], answer["content"][0]["text"]
    assert (workspace / "shapes.py").read_text() == EDGE


@pytest.mark.parametrize("mode", MODES)
async def test_no_roots_narrow_nothing(workspace: Path, mode: str) -> None:
    """As the Inspector answers, in which no folder is open."""
    client = await begun(workspace, mode, [])
    answer = await client.call("apply_edit", **apply_arguments())
    assert not answer["isError"], answer["content"][0]["text"]


@pytest.mark.parametrize("mode", MODES)
async def test_two_at_once_are_both_answered(workspace: Path, mode: str) -> None:
    client = await begun(workspace, mode)
    rename = {"path": "shapes.py", "line": 1, "name": "area", "new_name": "surface"}
    answers = await asyncio.gather(
        client.call("apply_edit", **apply_arguments()), client.call("rename_symbol", **rename)
    )
    assert [answer["isError"] for answer in answers] == [False, False]
    assert (workspace / "shapes.py").read_text() == EDGE.replace("area", "surface")


@pytest.mark.parametrize("mode", MODES)
async def test_a_call_that_takes_long_tells_what_it_waits_for(
    workspace: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PROGRESS_S", 0.01)
    client = await begun(workspace, mode)
    client.daemon.waiting = asyncio.Event()
    arguments = {"path": "shapes.py", "lines": "1:2", "instruction": "loud"}
    asked = {"name": "edit_file", "arguments": arguments, "_meta": {"progressToken": "a token"}}
    call = asyncio.ensure_future(client.ask("tools/call", **asked))
    progress: list[Any] = []
    while len(progress) < 3 or progress[-1]["message"] != "the model writes":
        await asyncio.sleep(0)
        said = [message for message in client.sent if "progress" in message.get("method", "")]
        progress = [message["params"] for message in said]
        assert not call.done()
    assert [each["progress"] for each in progress] == [*range(1, len(progress) + 1)]
    assert {each["progressToken"] for each in progress} == {"a token"}
    client.daemon.waiting.set()
    assert (await call)["result"]["isError"] is False


def test_nothing_heavy_is_imported_before_the_first_call() -> None:
    """Claude Code gives up a server that is silent for three seconds."""
    import subprocess
    import sys

    heavy = "numpy numba lsprotocol pygls mcp pydantic httpx2 lsp_server.editor.agents.tools"
    program = (
        "import sys, lsp_server.editor.agents.server, lsp_server.commands.cli.mcp\n"
        f"print([name for name in {heavy.split()} if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert found.stdout == "[]\n", found.stderr
