"""Offers the user a model when none is chosen, once for all editors, and one that would make an
edit that the one at hand did not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from lsp_server.editor.notices.asking import pressed
from lsp_server.editor.protocol.progress import Progress
from lsp_server.models.better_editor import BetterEditor, better_editor
from lsp_server.models.choices import write_choice
from lsp_server.models.fetched import models_folder
from lsp_server.models.manifest import DEFAULT
from lsp_server.models.models_process import fetch_in_process
from lsp_server.models.progress import COMPILING
from lsp_server.shared.errors import RedraftError
from lsp_server.shared.processes.background import in_background

if TYPE_CHECKING:
    from lsp_server.editor.hub.hub import Hub
    from lsp_server.editor.protocol.client_features import ClientFeatures
    from lsp_server.editor.protocol.jsonrpc import RedraftProtocol

FETCH = "Fetch the Default"
CHOOSE = "Choose…"
NOT_NOW = "Not Now"
FETCH_AND_USE = "Fetch and Use It"
USE = "Use It"
DEFAULT_IS = "SmolLM2-135M with an adapter for code (98 MB, Apache-2.0)"
QUESTION = (
    "Redraft completes and edits code with a model on this machine, and none is chosen. "
    f"Fetch the default, {DEFAULT_IS}, or choose one?"
)

TOLD = (
    "Redraft has no model: run `redraft models get default` (98 MB), or choose one of this "
    "machine: redraft models use NAME"
)
"""Vim's clients cut what stands beyond 75 characters."""


class OfferedEditor(Protocol):
    """An editor whose user may choose a model."""

    @property
    def protocol(self) -> RedraftProtocol: ...
    @property
    def hub(self) -> Hub: ...
    @property
    def features(self) -> ClientFeatures: ...
    def show_warning(self, message: str) -> None: ...


async def offer_models(editor: OfferedEditor) -> None:
    """``window/showMessageRequest``, unless there was an answer before or another editor asks just
    now. Until a model is chosen nothing is computed. Who said yes before is not asked."""
    question = editor.hub.question
    if not question.is_open:
        return
    question.begin()
    try:
        agreed = FETCH if editor.features.fetch_model else None
        title = agreed or await pressed(editor.protocol, QUESTION, (FETCH, CHOOSE, NOT_NOW))
        if title is None or (title == FETCH and not await fetch_model(editor, DEFAULT)):
            # Whoever wanted it is asked again at the next start.
            return
        question.answer(title or "closed")
    finally:
        question.end()
    if title == CHOOSE and editor.features.choose_model:
        editor.protocol.tell("redraft/chooseModel", {})
    elif title == CHOOSE:
        editor.show_warning("Redraft: `redraft models` lists them; then: redraft models use NAME")


SHARES = {"fetching": (0, 50), "adding the adapter": (50, 10), COMPILING: (0, 40)}
"""Percent of the bar before each step, and of its own; with others it stays where it is."""


async def fetch_model(editor: OfferedEditor, name: str, purpose: str = "completion") -> bool:
    """Fetch a model, show how far that is, and choose it for all editors that name none. Whether
    that came to its end."""
    progress = Progress(editor.protocol, None, editor.features.work_done_progress)
    await progress.begin(f"Redraft: fetching the model {name}")
    editor.hub.set_fetching(f"fetching the model {name}")

    percents = [0, 0]

    def report(step: str, done: int, total: int) -> None:
        start, share = SHARES.get(step, (0, 0))
        reached = start + (share * done // total if total else 0)
        # What every model calls is compiled first, then what this one calls: the bar stays.
        percents[step == COMPILING] = max(percents[step == COMPILING], reached)
        message = f"{step}, {sum(percents)} %"
        progress.report(message, sum(percents))
        editor.hub.set_fetching(f"the model {name}: {message}")

    try:
        path = await fetch_in_process(name, report)
        write_choice(purpose, str(path))
    except RedraftError as error:
        editor.show_warning(f"Redraft: {error}")
        return False
    finally:
        progress.end()
        editor.hub.set_fetching("")
    editor.hub.choices_changed()
    return True


def tell_once(editor: OfferedEditor) -> None:
    """For editors without buttons in messages: one message with the command, once a day."""
    if not editor.hub.question.is_told():
        editor.show_warning(TOLD)


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
        button = USE if better.is_here else FETCH_AND_USE
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
