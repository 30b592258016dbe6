"""The features of the connected editor, read once from its capabilities and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lsprotocol import types

from lsp_server.shared.settings import SECTIONS
from lsp_server.text.documents.document import Encoding

ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")


@dataclass(frozen=True, slots=True)
class ClientFeatures:
    """Capabilities that change what we send."""

    encoding: Encoding = "utf-16"
    inline_completion: bool = False
    draws_suggestions: bool = False
    """The client is one of our own, which always draw suggestions as ghost text."""
    document_changes: bool = False
    change_annotations: bool = False
    work_done_progress: bool = False
    apply_edit: bool = False
    configuration: bool = False
    watches_files: bool = False
    edit_command: bool = False
    """The client has a command that asks for an instruction: ``redraft.editWithInstruction``."""
    choose_model: bool = False
    """The client shows messages with buttons, and asks the user for another model when it is sent
    ``redraft/chooseModel``."""
    fetch_model: bool = False
    """The user told the client already that the default may be fetched where none is chosen."""
    message_buttons: bool = False
    """The client shows messages with buttons."""
    unresolved_actions: bool = False
    """Code actions must come complete: the client asks for no edit when one is chosen."""
    generated_tag: bool = False
    """Code actions may be marked as made by a language model."""
    indents_items: bool = False
    """The editor indents every line of a menu's item as far as the line that it goes into."""
    filters_by_whole_text: bool = False
    """kakoune-lsp takes an item for a snippet, in which ``$`` stands for more than itself, unless
    the item is filtered by the text that it inserts."""
    options: dict[str, Any] = field(default_factory=dict)
    """``initializationOptions`` as they came."""

    @classmethod
    def of(cls, params: types.InitializeParams) -> ClientFeatures:
        """Read ``initialize``. What a client does not say is taken as not there."""
        options = params.initialization_options
        options = options if isinstance(options, dict) else {}
        own = options.get("redraft")
        capabilities = params.capabilities
        name = params.client_info.name if params.client_info else ""
        # vim-lsp knows no inline completion; asyncomplete-lsp takes its provider for the menu's,
        # ignores the range of an item, and replaces the line by it.
        inline = _has(capabilities, "text_document", "inline_completion") and name != "vim-lsp"
        return cls(
            # copilot.vim counts in UTF-16 whatever its editor announces.
            encoding="utf-16" if "editorPluginInfo" in options else _encoding(capabilities),
            inline_completion=inline,
            draws_suggestions=inline and _option(own, "editCommand"),
            document_changes=_is(capabilities, "workspace", "workspace_edit", "document_changes"),
            change_annotations=_has(
                capabilities, "workspace", "workspace_edit", "change_annotation_support"
            ),
            work_done_progress=_is(capabilities, "window", "work_done_progress"),
            # Kate applies edits without saying so; its settings do.
            apply_edit=_is(capabilities, "workspace", "apply_edit") or _option(own, "applyEdit"),
            configuration=_is(capabilities, "workspace", "configuration"),
            watches_files=_is(
                capabilities, "workspace", "did_change_watched_files", "dynamic_registration"
            ),
            edit_command=_option(own, "editCommand"),
            choose_model=_option(own, "chooseModel"),
            fetch_model=_option(own, "fetchModel"),
            message_buttons=_option(own, "chooseModel")
            or _has(capabilities, "window", "show_message", "message_action_item"),
            unresolved_actions=not _resolves_edits(capabilities),
            generated_tag=_tags(capabilities),
            indents_items=_indents(capabilities),
            filters_by_whole_text=name == "kakoune-lsp",
            options=options,
        )

    def misplaced_settings(self, answered: Mapping[str, Any]) -> list[str]:
        """Return settings that are beside ``settings``, where they are not read: in the options
        themselves or in their ``redraft``. Those that the client also ``answered``, as Helix does,
        are read from there."""
        own = self.options.get("redraft")
        inner = own if isinstance(own, dict) else {}
        lost = SECTIONS - answered.keys()
        beside = [name for name in self.options if name in lost]
        return beside + [f"redraft.{name}" for name in inner if name in lost]


def _encoding(capabilities: types.ClientCapabilities) -> Encoding:
    """Return the client's first choice that we know; UTF-16 is what every client must take."""
    offered = _get(capabilities, "general", "position_encodings") or []
    names = [getattr(encoding, "value", encoding) for encoding in offered]
    return next(
        (encoding for name in names for encoding in ENCODINGS if encoding == name), "utf-16"
    )


def _resolves_edits(capabilities: types.ClientCapabilities) -> bool:
    path = ("text_document", "code_action", "resolve_support", "properties")
    return "edit" in (_get(capabilities, *path) or [])


def _tags(capabilities: types.ClientCapabilities) -> bool:
    tags = _get(capabilities, "text_document", "code_action", "tag_support", "value_set") or []
    return types.CodeActionTag.LlmGenerated in tags


def _indents(capabilities: types.ClientCapabilities) -> bool:
    """Return True if the editor indents items itself and cannot be told not to."""
    menu = _get(capabilities, "text_document", "completion")
    modes = _get(menu, "completion_item", "insert_text_mode_support", "value_set") or []
    default = _get(menu, "insert_text_mode")
    adjusts: bool = default == types.InsertTextMode.AdjustIndentation
    return adjusts and types.InsertTextMode.AsIs not in modes


def _option(own: Any, name: str) -> bool:
    return isinstance(own, dict) and own.get(name) is True


def _get(value: Any, *names: str) -> Any:
    for name in names:
        value = getattr(value, name, None)
    return value


def _is(value: Any, *names: str) -> bool:
    return bool(_get(value, *names))


def _has(value: Any, *names: str) -> bool:
    return _get(value, *names) is not None
