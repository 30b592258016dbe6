"""What of a workspace is to be sent to a server, gathered until it is sent."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from lsp_server.editor.remote.sharing.workspace_sync import WorkspaceSync


def test_changes_that_come_while_all_is_to_be_sent_change_nothing_of_that() -> None:
    async def scene() -> None:
        nothing = cast("Any", None)
        sync = WorkspaceSync(nothing, "/w", nothing, "", nothing, nothing)
        sync._task.cancel()
        sync._paths = set()
        sync._note(["a.py"])
        sync._note(["b.py", "a.py"])
        assert sync._paths == {"a.py", "b.py"}
        sync._note(None)
        sync._note(["c.py"])
        assert sync._paths is None, "all files are to be sent"
        assert sync._changed.is_set()

    asyncio.run(scene())
