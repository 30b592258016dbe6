"""Copilot's protocol as copilot.vim 1 and copilot.lua speak it. No one signs in here, and nothing
is reported anywhere."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from lsp_server.shared.version import VERSION

_SIGNED_IN = {"status": "OK", "user": "redraft"}
_ALREADY = {"status": "AlreadySignedIn", "user": "redraft"}
ANSWERS: dict[str, Any] = {
    **dict.fromkeys(("checkStatus", "signInConfirm"), _SIGNED_IN),
    **dict.fromkeys(("signIn", "signInInitiate"), _ALREADY),
    "signOut": {"status": "NotSignedIn"},
    "getVersion": {"version": VERSION},
    **dict.fromkeys(
        ("setEditorInfo", "notifyShown", "notifyRejected", "telemetry/exception"), "OK"
    ),
    **dict.fromkeys(("textDocument/didFocus", "textDocument/didShowCompletion")),
}
"""Methods whose answer is always the same."""


def asked_place(params: Any) -> types.InlineCompletionParams:
    """Return the place that ``getCompletions`` asks about, as LSP has it."""
    document, position = params["doc"]["uri"], params["doc"]["position"]
    return types.InlineCompletionParams(
        types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic),
        types.TextDocumentIdentifier(str(document)),
        types.Position(int(position["line"]), int(position["character"])),
    )


def completions(
    suggestions: types.InlineCompletionList | None, position: types.Position
) -> dict[str, Any]:
    """Return the answer to ``getCompletions`` at ``position`` with the items of ``suggestions``."""
    return {
        "completions": [
            {
                "uuid": _uuid(item),
                "text": item.insert_text,
                "displayText": item.insert_text,
                "range": item.range,
                "position": position,
            }
            for item in (suggestions.items if suggestions is not None else ())
        ]
    }


def _uuid(item: types.InlineCompletionItem) -> str:
    outcome: Any = item.command.arguments[0] if item.command and item.command.arguments else {}
    return ".".join(str(outcome[name]) for name in ("id", "number", "length"))


def outcome(params: Any) -> dict[str, Any]:
    """Return what ``notifyAccepted`` tells, as ``redraft.accepted`` takes it."""
    numbers = [int(number) for number in params["uuid"].split(".")]
    accepted = dict(zip(("id", "number", "length"), numbers, strict=True))
    return {**accepted, "length": params.get("acceptedLength") or accepted["length"]}
