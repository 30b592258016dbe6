"""Says which model would make an edit that the one at hand did not, and fetches it where the user
wants that."""

from __future__ import annotations

import asyncio

from lsp_server.editor.notices.asking import pressed
from lsp_server.editor.notices.first_start import NOT_NOW, OfferedEditor, fetch_model
from lsp_server.models.better_editor import BetterEditor, better_editor
from lsp_server.models.choices import write_choice
from lsp_server.models.fetched import models_folder
from lsp_server.shared.errors import RedraftError
from lsp_server.shared.processes.background import in_background

FETCH = "Fetch and Use It"
USE = "Use It"


class EditHelp:
    """For one editor. Where messages have buttons a model is offered once, then only named."""

    def __init__(self, editor: OfferedEditor) -> None:
        self._editor = editor
        self._offered: set[str] = set()

    async def __call__(self, model: str) -> str:
        """Return the advice on an edit that ``model`` did not make; empty where nothing helps, or
        where the user is asked."""
        better = await asyncio.to_thread(better_editor, model)
        if better is None:
            return ""
        name = better.model.name
        if not self._editor.features.message_buttons or name in self._offered:
            return better.advice
        self._offered.add(name)
        in_background(self._offer(better))
        return ""

    async def _offer(self, better: BetterEditor) -> None:
        button = USE if better.is_here else FETCH
        text = f"Redraft: {better.reason}."
        if await pressed(self._editor.protocol, text, (button, NOT_NOW)) != button:
            return
        if not better.is_here:
            await fetch_model(self._editor, better.model.name, "edits")
            return
        try:
            write_choice("edits", str(models_folder() / better.model.file))
        except RedraftError as error:
            self._editor.show_warning(f"Redraft: {error}")
            return
        self._editor.hub.choices_changed()
