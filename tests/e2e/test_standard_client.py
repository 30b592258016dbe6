"""A standard client (pytest-lsp, on pygls) understands us. Switched off: no model is loaded."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pytest_lsp import ClientServerConfig, LanguageClient

from .client import REPOSITORY, private_environment

URI = "file:///workspace/demo.py"
HOME = tempfile.TemporaryDirectory(prefix="redraft-standard-")
ENVIRONMENT = private_environment(Path(HOME.name))
COMMAND = [sys.executable, "-m", "lsp_server"]


@pytest_lsp.fixture(
    config=ClientServerConfig(server_command=[*COMMAND, "serve"], server_env=ENVIRONMENT)
)
async def client(lsp_client: LanguageClient) -> AsyncIterator[None]:
    @lsp_client.feature("redraft/status")
    def status(_: Any) -> None:
        """Heard and left alone."""

    result = await lsp_client.initialize_session(
        types.InitializeParams(
            capabilities=types.ClientCapabilities(
                text_document=types.TextDocumentClientCapabilities(
                    inline_completion=types.InlineCompletionClientCapabilities()
                )
            ),
            initialization_options={"settings": {"enabled": False}},
        )
    )
    assert result.capabilities.inline_completion_provider is not None
    item = types.TextDocumentItem(URI, "python", 1, "# redraft: sort it\nx = [2, 1]\n")
    lsp_client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    yield
    await lsp_client.shutdown_session()
    subprocess.run([*COMMAND, "stop"], env=ENVIRONMENT, cwd=REPOSITORY, check=False, timeout=60)


def ask() -> types.InlineCompletionParams:
    return types.InlineCompletionParams(
        text_document=types.TextDocumentIdentifier(URI),
        position=types.Position(1, 4),
        context=types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic),
    )


@pytest.mark.asyncio
async def test_a_standard_client_is_understood(client: LanguageClient) -> None:
    answer = await client.text_document_inline_completion_async(ask())
    assert isinstance(answer, types.InlineCompletionList)
    assert list(answer.items) == []
    status: Any = await client.protocol.send_request_async("redraft/status", {})
    assert status.state == "inactive"
    assert "redraft.enabled" in status.message
    span = types.Range(types.Position(0, 0), types.Position(1, 0))
    actions = await client.text_document_code_action_async(
        types.CodeActionParams(
            types.TextDocumentIdentifier(URI), span, types.CodeActionContext(diagnostics=[])
        )
    )
    assert not actions
    params = ask()
    params.text_document = types.TextDocumentIdentifier("file:///unknown.py")
    with pytest.raises(JsonRpcException, match="not open"):
        await client.text_document_inline_completion_async(params)
