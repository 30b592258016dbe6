"""Text of other files that goes along with requests: a real index and lookups in a process."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from server_stand_in import KEY, MODEL, Server, served

from lsp_server.editor.hub.hub import Hub
from lsp_server.shared.contract.jobs import CompletionJob
from lsp_server.shared.settings import read_settings

SMALL_MODEL = str(Path(__file__).parents[3] / "data" / "small_model")
LIKE = "".join(f"    total_{n} = measured_width(shape, side={n})\n" for n in range(9))


# Minutes where lookups were not compiled yet.
@pytest.mark.parametrize("sharing", [pytest.param(True, marks=pytest.mark.long), False])
async def test_what_the_own_index_knows_goes_along_once_the_user_shares_it(
    sharing: bool, bare_home: Path, tmp_path: Path
) -> None:
    (tmp_path / "like.py").write_text(f"def other(shape):\n{LIKE}")
    (tmp_path / "ignored.py").write_text(f"def ignored(shape):\n{LIKE}")
    (tmp_path / ".gitignore").write_text("ignored.py\n")
    prefix = "def own(shape):\n" + "".join(LIKE.splitlines(keepends=True)[:4])
    job = CompletionJob(str(tmp_path), "own.py", prefix, "\n", "python")
    server, hub = Server(), Hub()
    server.model = {**MODEL, "similar_bytes": 1 << 16}
    async with served(server) as url:
        values: dict[str, Any] = {
            "server": {"url": url, "key": KEY, "sharing": sharing},
            "model": {"path": SMALL_MODEL},
            "index": {"common": "none"},
        }
        settings = read_settings(values).settings
        hub.open_workspace(str(tmp_path), settings)
        engine = hub.engine(settings)
        until = time.monotonic() + 240
        while hub._store_of(str(tmp_path)) is None:
            assert time.monotonic() < until, "the workspace was not indexed"
            await asyncio.sleep(0.1)
        sent: list[Any] = []
        for number in range(1500 if sharing else 5):
            # The cursor goes to another line and back, for which text is chosen anew.
            asked = replace(job, prefix="\n" * (number % 2) + prefix)
            await engine.ask(asked, "c").future
            sent = server.bodies("/redraft/v1/complete")[-1]["job"].get("similar", [])
            if sent:
                break
            await asyncio.sleep(0.2)
        await hub.close()
    assert bool(sent) is sharing
    assert {snippet["path"] for snippet in sent} == ({"", "like.py"} if sharing else set())
    assert all("def ignored" not in snippet["text"] for snippet in sent)
