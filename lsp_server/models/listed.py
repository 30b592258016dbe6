"""Lists the models for an editor in another process, because that reads many headers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from accel.native.python_process import python_command
from lsp_server.shared.errors import RedraftError

_LONGEST_S = 60.0


async def listed_models() -> dict[str, Any]:
    """Return the document that ``redraft models --json`` prints. Raises RedraftError."""
    process = await asyncio.create_subprocess_exec(
        *python_command("lsp_server", "models", "--json"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        printed, complaints = await asyncio.wait_for(process.communicate(), _LONGEST_S)
    except asyncio.TimeoutError:
        process.kill()
        raise RedraftError(f"the models were not listed in {_LONGEST_S:.0f} s") from None
    if process.returncode:
        raise RedraftError(f"the models cannot be listed: {complaints.decode().strip()[-300:]}")
    document: dict[str, Any] = json.loads(printed)
    return document
