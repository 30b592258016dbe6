"""Lists models, and fetches one, in a process of its own: that reads many headers, takes arrays and
processor time, which a server that answers keystrokes has no use for."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from accel.native.python_process import python_command
from lsp_server.models.manifest import DEFAULT
from lsp_server.models.progress import Report, unheard
from lsp_server.shared.errors import RedraftError

_LONGEST_LISTING_S = 60.0
_ENDS_S = 5.0
_LONGEST_LINE = 1 << 16


async def listed_models() -> dict[str, Any]:
    """Return the document that ``redraft models --json`` prints. Raises RedraftError."""
    process = await _started("--json")
    try:
        printed, complaints = await asyncio.wait_for(process.communicate(), _LONGEST_LISTING_S)
    except asyncio.TimeoutError:
        process.kill()
        message = f"the models were not listed in {_LONGEST_LISTING_S:.0f} s"
        raise RedraftError(message) from None
    if process.returncode:
        raise RedraftError(f"the models cannot be listed: {complaints.decode().strip()[-300:]}")
    document: dict[str, Any] = json.loads(printed)
    return document


async def fetch_in_process(name: str = DEFAULT, report: Report = unheard) -> Path:
    """Return the file of a model that can be fetched, by default of the default model. ``report``
    hears in the event loop what is done and how many bytes of how many (0: not known). Cancelling
    the task ends the download, and the next one goes on there. Raises RedraftError."""
    process = await _started("get", name, "--progress", "json")
    assert process.stdout is not None
    assert process.stderr is not None
    complaints = asyncio.ensure_future(process.stderr.read())
    file = ""
    try:
        async for line in process.stdout:
            message = json.loads(line)
            if "file" in message:
                file = message["file"]
            else:
                report(message["step"], message["done"], message["total"])
        await process.wait()
    finally:
        await _end(process)
        lines = (await complaints).decode("utf-8", "replace").strip().splitlines()
    if not file:
        why = lines[-1].removeprefix("redraft: ") if lines else ""
        raise RedraftError(why or f"{name} could not be fetched; try again")
    return Path(file)


async def _started(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *python_command("lsp_server", "models", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_LONGEST_LINE,
    )


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _ENDS_S)
    except asyncio.TimeoutError:
        process.kill()
        await process.wait()
