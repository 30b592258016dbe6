"""``redraft mcp`` as coding agents start it, with the SDK's client, beside an editor of the same
daemon."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.server.server_stand_in import KEY, Server, served

from .client import REPOSITORY, Driver, daemon_status, redraft
from .conftest import SHAPES

pytest.importorskip("mcp", reason="the extra mcp is not installed")
from mcp import Client
from mcp.client.stdio import StdioServerParameters

Connect = Callable[..., Driver]
SNIPPET = """\
# ... existing code ...
    def area(self):
        \"\"\"Area of the rectangle.\"\"\"
        return abs(self.width * self.height)
# ... existing code ...
"""
WRITTEN = SHAPES.replace("return self.width * self.height", "return abs(self.width * self.height)")


def with_agent(
    environment: dict[str, str],
    folder: Path,
    work: Callable[[Client], Awaitable[Any]],
    mode: str = "auto",
) -> Any:
    """Return what ``work`` returns, given a client whose server may edit in ``folder``."""
    return asyncio.run(serve_agent(environment, folder, work, mode))


async def serve_agent(
    environment: dict[str, str],
    folder: Path,
    work: Callable[[Client], Awaitable[Any]],
    mode: str = "auto",
) -> Any:
    """Start ``redraft mcp`` for ``folder`` and return what ``work`` returns, given its client."""
    program, *arguments = redraft(environment)
    server = StdioServerParameters(
        command=program,
        args=[*arguments, "mcp", "--workspace", str(folder)],
        env=environment,
        cwd=REPOSITORY,
    )
    async with Client(server, mode=mode) as client:
        return await work(client)


@pytest.fixture
def folder(workspace: Path) -> Path:
    """The workspace, as it is at the beginning of every test."""
    (workspace / "shapes.py").write_text(SHAPES)
    return workspace


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_snippet_is_written(
    environment: dict[str, str], first: Driver, folder: Path, mode: str
) -> None:
    async def work(client: Client) -> None:
        assert len((await client.list_tools()).tools) == 4
        arguments = {"path": "shapes.py", "snippet": SNIPPET}
        answer = await client.call_tool("apply_edit", arguments)
        assert not answer.is_error, answer.content[0].text

    with_agent(environment, folder, work, mode)
    assert (folder / "shapes.py").read_text() == WRITTEN


def test_the_daemon_of_the_editor_answers_with_its_model(
    environment: dict[str, str], first: Driver, folder: Path
) -> None:
    before = daemon_status(environment)

    async def work(client: Client) -> Any:
        rename = {"path": "shapes.py", "line": 14, "name": "factor", "new_name": "by"}
        renamed = await client.call_tool("rename_symbol", {**rename, "preview": True})
        assert "+def scale(rectangle, by):" in renamed.content[0].text
        arguments = {"path": "shapes.py", "lines": "9:11", "instruction": "remove the docstring"}
        edited = await client.call_tool("edit_file", arguments)
        return edited, daemon_status(environment)

    edited, meanwhile = with_agent(environment, folder, work)
    assert meanwhile["pid"] == before["pid"]
    assert meanwhile["clients"] == before["clients"] + 1
    assert len(meanwhile["engines"]) == len(before["engines"])
    # A small model may fail at it, and the file is as it was then.
    said = edited.structured_content
    assert edited.is_error == ("refused" in said)
    is_written = not edited.is_error and said["written"]
    assert ((folder / "shapes.py").read_text() != SHAPES) == is_written
    if not edited.is_error:
        assert said["how"] == "model"


def test_a_buffer_that_is_unsaved_in_an_editor_is_not_written_over(
    environment: dict[str, str], connect: Connect, folder: Path
) -> None:
    editor = connect()
    uri = (folder / "shapes.py").as_uri()
    editor.open(uri, SHAPES)

    async def work(client: Client) -> tuple[Any, Any]:
        arguments = {"path": "shapes.py", "snippet": SNIPPET}
        editor.insert(uri, 2, 0, 0, "# typed\n")
        # The daemon has read it once it answers.
        editor.request("redraft/status", {"textDocument": {"uri": uri}})
        refused = await client.call_tool("apply_edit", arguments)
        editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        editor.request("redraft/status", None)
        return refused, await client.call_tool("apply_edit", arguments)

    refused, answer = with_agent(environment, folder, work)
    assert refused.is_error
    assert "unsaved changes in an editor" in refused.content[0].text
    assert not answer.is_error, answer.content[0].text
    assert (folder / "shapes.py").read_text() == WRITTEN


def test_a_cancelled_call_stops_at_the_model(own_environment: dict[str, str], folder: Path) -> None:
    """The model is a team's: it begins its answer and stops there, until the call is cancelled."""
    server = Server()
    server.pause.clear()

    async def work(client: Client) -> None:
        arguments = {"path": "shapes.py", "lines": "1:20", "instruction": "return lists"}
        call = asyncio.ensure_future(client.call_tool("edit_file", arguments))
        while not server.bodies("/redraft/v1/edit"):
            assert not call.done(), call.result().content[0].text
            await asyncio.sleep(0.02)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await server.closed.wait()
        # The file is free again.
        answer = await client.call_tool("apply_edit", {"path": "shapes.py", "snippet": SHAPES})
        assert not answer.is_error

    async def run() -> None:
        async with served(server) as url:
            here = {**own_environment, "REDRAFT_SERVER_URL": url, "REDRAFT_SERVER_KEY": KEY}
            await serve_agent(here, folder, work)

    asyncio.run(run())
    assert (folder / "shapes.py").read_text() == SHAPES


def test_places_that_are_alike_come_from_the_index_of_the_daemon(
    environment: dict[str, str], first: Driver, folder: Path
) -> None:
    wanted = "\n".join(SHAPES.split("\n")[13:18])

    async def work(client: Client) -> Any:
        while True:
            answer = await client.call_tool("find_similar", {"text": wanted})
            if not answer.is_error and answer.structured_content["places"]:
                return answer.structured_content
            await asyncio.sleep(0.2)

    found = with_agent(environment, folder, work)
    assert found["places"][0]["path"] == "shapes.py"
    first_line, last_line = map(int, found["places"][0]["lines"].split(":"))
    shown = SHAPES.split("\n")[first_line - 1 : last_line]
    assert "\n".join(shown) == found["places"][0]["text"]
