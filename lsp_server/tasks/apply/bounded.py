"""Edits within limits of time: large texts are edited in a process, which ends when an edit takes
too long or is given up. One large edit is made at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from lsp_server.shared.errors import WorkTakesTooLong
from lsp_server.shared.processes.background import in_background
from lsp_server.shared.processes.function_process import FunctionProcess
from lsp_server.tasks.apply.refusals import AmbiguousSnippet

LARGE = 1 << 16
"""Characters of a file and an edit that are left to a process."""
LONGEST_S = 1.6
"""With what comes before and after it, an answer takes less than two seconds."""
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


class BoundedEdits:
    """Makes edits. For one event loop."""

    def __init__(self) -> None:
        self._process = FunctionProcess(LONGEST_S)
        self._turn = asyncio.Lock()

    async def merged(
        self,
        size: int,
        edit: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """Return what ``edit`` returns of texts of ``size`` characters. Raises AmbiguousSnippet."""
        if size < LARGE:
            return await asyncio.to_thread(edit, *arguments, **named)
        async with self._turn:
            try:
                return await self._process.call(edit, *arguments, **named)
            except WorkTakesTooLong as error:
                raise AmbiguousSnippet(
                    f"the edit takes {error}; send a smaller one, or old_string and new_string"
                ) from None
            except asyncio.CancelledError:
                in_background(self._process.end())
                raise

    async def read(
        self,
        text: str,
        reader: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """Return what ``reader`` tells of ``text``: at once, if it is not large."""
        if len(text) < LARGE:
            return reader(*arguments, **named)
        return await self.merged(len(text), reader, *arguments, **named)

    async def close(self) -> None:
        """End the process."""
        await self._process.close()
