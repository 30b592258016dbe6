"""The daemon's side of the indexer: what is told of a workspace that is opened again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from lsp_server.index.client import IndexerClient


def test_a_workspace_is_opened_again_with_other_options_alone() -> None:
    sent: list[dict[str, Any]] = []
    client = IndexerClient(lambda *_: None)
    client._child = cast("Any", SimpleNamespace(send=lambda frame: not sent.append(frame)))
    for exclude in ([], [], ["a"], ["a"], []):
        client.open_workspace("/w", "model", {"exclude": exclude})
    client.open_workspace("/w", "other", {"exclude": []})
    client.open_workspace("/v", "model", {"exclude": []})
    assert [(one["folder"], one["model"], one["exclude"]) for one in sent] == [
        ("/w", "model", []),
        ("/w", "model", ["a"]),
        ("/w", "model", []),
        ("/w", "other", []),
        ("/v", "model", []),
    ]
