"""The capabilities that the server announces."""

from __future__ import annotations

from lsprotocol import types

from lsp_server.editor.protocol.client_features import ClientFeatures
from lsp_server.shared.settings import Settings
from lsp_server.shared.version import PROTOCOL

RUN_EDIT = "redraft.runEdit"
"""Has an edit made and applied by the client's own workspace/applyEdit."""
ALLOW_FILE = "redraft.allowFile"
HOLD_BACK_FILE = "redraft.holdBackFile"
USE_MODEL = "redraft.useModel"
"""The user allows a file that is held back, or takes that back."""
NEXT_EDIT_ACCEPTED = "redraft.nextEdit.accepted"
NEXT_EDIT_REJECTED = "redraft.nextEdit.rejected"
"""What became of a next edit: ``{number}``."""
SNOOZE = "redraft.snooze"
"""The user wants nothing for a while: ``{minutes}``."""
COMMANDS = [
    "redraft.reindex",
    "redraft.status",
    "redraft.pause",
    "redraft.resume",
    SNOOZE,
    RUN_EDIT,
    "redraft.accepted",
    ALLOW_FILE,
    HOLD_BACK_FILE,
    USE_MODEL,
    NEXT_EDIT_ACCEPTED,
    NEXT_EDIT_REJECTED,
]
EDIT_COMMAND = "redraft.editWithInstruction"
"""The client's own command, which asks for the instruction. It is not among ours: clients register
every command that a server announces, and two of one name collide."""

TRIGGERS = [".", "(", "[", "="]
"""Characters that open the menu by themselves. Enter after one of them begins no new line: editors
that take the first item by Enter would put in a suggestion instead."""


def offers_menu(features: ClientFeatures, settings: Settings) -> bool:
    """Return if suggestions are offered in the completion menu. Neovim 0.12 announces inline
    completion although its user may have switched on a menu alone: the first request tells."""
    menu = settings.completion.menu
    return menu == "always" or (menu == "auto" and not features.draws_suggestions)


def server_capabilities(features: ClientFeatures, settings: Settings) -> types.ServerCapabilities:
    """Return the answer to ``initialize``."""
    menu = types.CompletionOptions(trigger_characters=TRIGGERS)
    inline = types.InlineCompletionOptions() if features.inline_completion else None
    return types.ServerCapabilities(
        position_encoding=types.PositionEncodingKind(features.encoding),
        text_document_sync=types.TextDocumentSyncOptions(
            open_close=True,
            change=types.TextDocumentSyncKind.Incremental,
            save=types.SaveOptions(include_text=False),
        ),
        notebook_document_sync=types.NotebookDocumentSyncOptions(
            notebook_selector=[
                types.NotebookDocumentFilterWithNotebook(
                    notebook=types.NotebookDocumentFilterNotebookType(notebook_type="*")
                )
            ]
        ),
        inline_completion_provider=inline,
        completion_provider=menu if offers_menu(features, settings) else None,
        code_action_provider=types.CodeActionOptions(
            code_action_kinds=[types.CodeActionKind.RefactorRewrite, types.CodeActionKind.QuickFix],
            resolve_provider=True,
        ),
        experimental={"redraft": {"protocol": PROTOCOL}},
        execute_command_provider=types.ExecuteCommandOptions(commands=COMMANDS),
        workspace=types.WorkspaceOptions(
            workspace_folders=types.WorkspaceFoldersServerCapabilities(
                supported=True, change_notifications=True
            )
        ),
    )
