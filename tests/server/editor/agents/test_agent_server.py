"""The protocol, with the SDK's own client: versions before and since its change of July 2026."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from agent_workspace import EDGE, SHAPES, SNIPPET
from daemon_stand_in import DaemonStandIn

from lsp_server.editor.agents.agent_files import AgentFiles

mcp = pytest.importorskip("mcp", reason="the extra mcp is not installed")
from mcp import Client, types  # noqa: E402

from lsp_server.editor.agents.server import agent_server  # noqa: E402

MODES = ["legacy", "auto"]


class Session:
    """A client with its roots, and the server."""

    def __init__(self, workspace: Path, mode: str, roots: list[Path] | None = None) -> None:
        self.daemon = DaemonStandIn()
        self.roots = roots
        server = agent_server(AgentFiles([workspace]), self.daemon)  # type: ignore[arg-type]
        told = {} if roots is None else {"list_roots_callback": self._listed}
        self.client = Client(server, mode=mode, **told)

    async def _listed(self, _context: Any) -> types.ListRootsResult:
        assert self.roots is not None
        return types.ListRootsResult(roots=[types.Root(uri=one.as_uri()) for one in self.roots])

    def run(self, work: Callable[[Client], Awaitable[Any]]) -> Any:
        async def inside() -> Any:
            async with self.client as client:
                return await work(client)

        return asyncio.run(inside())


def apply_arguments(**more: Any) -> dict[str, Any]:
    return {"path": "shapes.py", "snippet": SNIPPET, **more}


@pytest.mark.parametrize("mode", MODES)
def test_tools_are_listed_with_what_they_may_do(workspace: Path, mode: str) -> None:
    tools = Session(workspace, mode).run(lambda client: client.list_tools()).tools
    by_name = {tool.name: tool for tool in tools}
    assert set(by_name) == {"apply_edit", "edit_file", "rename_symbol", "find_similar"}
    for name, tool in by_name.items():
        assert tool.description
        assert tool.input_schema["additionalProperties"] is False
        hints = tool.annotations
        assert hints is not None
        assert hints.read_only_hint == (name == "find_similar")
        assert hints.open_world_hint is False
        if name != "find_similar":
            assert hints.destructive_hint is True
            assert hints.idempotent_hint == (name == "apply_edit")
            assert {"preview", "hash"} <= set(tool.input_schema["properties"])


@pytest.mark.parametrize("mode", MODES)
def test_an_edit_is_called(workspace: Path, mode: str) -> None:
    async def work(client: Client) -> Any:
        preview = await client.call_tool("apply_edit", apply_arguments(preview=True))
        known = preview.structured_content["hash"]
        assert known in preview.content[0].text
        assert (workspace / "shapes.py").read_text() == SHAPES
        return await client.call_tool("apply_edit", apply_arguments(hash=known))

    answer = Session(workspace, mode).run(work)
    assert answer.is_error is False
    assert answer.structured_content["written"] is True
    assert "+    return width + height" in answer.content[0].text
    assert (workspace / "shapes.py").read_text() == EDGE


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown field": (apply_arguments(wanted=1), "wanted: unknown"),
    "no path": ({"snippet": "a"}, "path: is missing"),
    "no snippet": ({"path": "shapes.py"}, "snippet: is missing"),
    "a path that is none": (apply_arguments(path=1), "path: expected a string"),
    "a file outside": (apply_arguments(path="../a.py"), "outside of the folders"),
    "a snippet of nothing there": (apply_arguments(snippet="plum\npear\n"), "fit several places"),
    "others that are no files": (apply_arguments(others=["uses.py"]), "expected a list"),
    "a hash that is unknown": (apply_arguments(hash="0"), "no such preview"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_an_answer(workspace: Path, case: str) -> None:
    given, said = WRONG[case]
    session = Session(workspace, "legacy")
    answer = session.run(lambda client: client.call_tool("apply_edit", given))
    assert answer.is_error is True
    assert said in answer.content[0].text
    assert answer.structured_content["refused"] == answer.content[0].text


@pytest.mark.parametrize("mode", MODES)
def test_an_unknown_tool_is_an_error(workspace: Path, mode: str) -> None:
    async def work(client: Client) -> None:
        with pytest.raises(mcp.MCPError, match="no tool delete_all"):
            await client.call_tool("delete_all", {})

    Session(workspace, mode).run(work)


@pytest.mark.parametrize("mode", MODES)
def test_roots_narrow_the_folders_and_may_change(workspace: Path, mode: str) -> None:
    (workspace / "sub").mkdir()
    (workspace / "sub" / "shapes.py").write_text(SHAPES)
    session = Session(workspace, mode, [workspace / "sub"])

    async def work(client: Client) -> None:
        refused = await client.call_tool("apply_edit", apply_arguments())
        assert refused.is_error
        assert "outside of the folders" in refused.content[0].text
        inside = await client.call_tool("apply_edit", apply_arguments(path="sub/shapes.py"))
        assert not inside.is_error, inside.content[0].text
        session.roots = [workspace.parent]
        if mode == "legacy":
            await client.send_roots_list_changed()
        answer = await client.call_tool("apply_edit", apply_arguments())
        assert not answer.is_error, answer.content[0].text
        session.roots = []
        answer = await client.call_tool("apply_edit", apply_arguments())
        assert answer.is_error

    session.run(work)
    assert (workspace / "shapes.py").read_text() == EDGE


@pytest.mark.parametrize("mode", MODES)
def test_two_at_once_are_both_answered(workspace: Path, mode: str) -> None:
    async def work(client: Client) -> list[Any]:
        rename = {"path": "shapes.py", "line": 1, "name": "area", "new_name": "surface"}
        return await asyncio.gather(
            client.call_tool("apply_edit", apply_arguments()),
            client.call_tool("rename_symbol", rename),
        )

    answers = Session(workspace, mode).run(work)
    assert [answer.is_error for answer in answers] == [False, False]
    assert (workspace / "shapes.py").read_text() == EDGE.replace("area", "surface")
