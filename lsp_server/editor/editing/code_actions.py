"""Code actions: edit with an instruction, ready-made instructions, instruction comments, fixes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from lsprotocol import types

from lsp_server.editor.editing.instruction_comments import (
    INSTRUCTION_MARK,
    InstructionComment,
    block_of,
    instruction_comment,
)
from lsp_server.editor.editing.presets import presets_for
from lsp_server.editor.protocol.capabilities import (
    ALLOW_FILE,
    EDIT_COMMAND,
    HOLD_BACK_FILE,
    RUN_EDIT,
)
from lsp_server.editor.protocol.client_features import ClientFeatures
from lsp_server.shared.settings import EditSettings
from lsp_server.text.documents.document import Document, Position
from lsp_server.text.syntax.roles import Role
from lsp_server.text.syntax.tree import SyntaxTree

MAX_FIXES = 3
LONGEST_PARSED = 100_000
"""Characters. In a longer document whatever looks like a comment is taken for one."""


@dataclass(frozen=True, slots=True)
class ActionContext:
    """The range, and its diagnostics, that the client asks actions for."""

    document: Document
    range: types.Range
    diagnostics: list[types.Diagnostic]
    only: list[str]
    is_unasked: bool = False
    """The editor asks at every cursor, to draw a light bulb."""

    @property
    def is_cursor(self) -> bool:
        """Nothing is selected."""
        return self.range.start == self.range.end

    @property
    def code(self) -> str:
        """The lines of the range."""
        end = self.range.end.line + (self.range.end.character > 0)
        return "".join(self.document.lines[self.range.start.line : end])


def code_actions(
    where: ActionContext,
    features: ClientFeatures,
    settings: EditSettings,
    *,
    withheld: bool = False,
    allowed: bool = False,
    done: Collection[str] = (),
) -> list[types.CodeAction]:
    """Everything that can be offered for a range. ``withheld``: the document holds secrets, and
    only the selection is edited; ``allowed``: the user allows it. ``done``: the instructions that
    the model's card says it carries out; then no others are offered."""
    actions = _edits(where, features, settings, withheld=withheld, done=done)
    if features.unresolved_actions:
        actions = [_as_command(action) for action in actions] if features.apply_edit else []
    if features.generated_tag:
        for action in actions:
            action.tags = [types.CodeActionTag.LlmGenerated]
    is_shown = not (where.is_unasked and where.is_cursor)
    if (withheld or allowed) and is_shown and _wanted(where, types.CodeActionKind.RefactorRewrite):
        actions.append(_allowance(where, allowed))
    return actions


def _allowance(where: ActionContext, allowed: bool) -> types.CodeAction:
    """Allows a document that is held back, or takes that back."""
    title = "Redraft: hold this file back again" if allowed else "Redraft: allow this file"
    command = HOLD_BACK_FILE if allowed else ALLOW_FILE
    return types.CodeAction(
        title=title,
        kind=types.CodeActionKind.RefactorRewrite,
        command=types.Command(title, command, arguments=[{"uri": where.document.uri}]),
    )


def _edits(
    where: ActionContext,
    features: ClientFeatures,
    settings: EditSettings,
    *,
    withheld: bool,
    done: Collection[str],
) -> list[types.CodeAction]:
    actions: list[types.CodeAction] = []
    if withheld and where.is_cursor:
        return actions
    if _wanted(where, types.CodeActionKind.RefactorRewrite):
        # A light bulb at every cursor would say nothing.
        if features.edit_command and not (where.is_unasked and where.is_cursor):
            actions.append(_ask_for_instruction(where))
        if settings.instruction_comments and not withheld:
            actions += _comments(where)
        if settings.presets and not where.is_cursor:
            language, instructions = where.document.language, settings.preset_instructions
            for preset in presets_for(language, instructions, done, where.code):
                title = f"Redraft: {preset.title or preset.instruction}"
                actions.append(_ready_made(where, title, preset.instruction))
    if not withheld and not done and _wanted(where, types.CodeActionKind.QuickFix):
        actions += [_fix(where, diagnostic) for diagnostic in where.diagnostics[:MAX_FIXES]]
    return actions


def _as_command(action: types.CodeAction) -> types.CodeAction:
    """Return the action for a client that never asks for its edit: a command that has it
    applied."""
    if action.data is not None:
        action.command = types.Command(action.title, RUN_EDIT, arguments=[action.data])
        action.data = None
    return action


def _wanted(where: ActionContext, kind: types.CodeActionKind) -> bool:
    return not where.only or any(
        kind.value == only or kind.value.startswith(only + ".") or only == "" for only in where.only
    )


def _ask_for_instruction(where: ActionContext) -> types.CodeAction:
    document = where.document
    argument = {"uri": document.uri, "range": where.range, "version": document.version}
    title = "Edit with instruction…"
    return types.CodeAction(
        title=title,
        kind=types.CodeActionKind.RefactorRewrite,
        command=types.Command(title=title, command=EDIT_COMMAND, arguments=[argument]),
    )


def _ready_made(
    where: ActionContext,
    title: str,
    instruction: str,
    kind: types.CodeActionKind = types.CodeActionKind.RefactorRewrite,
    span: types.Range | None = None,
    comment: bool = False,
) -> types.CodeAction:
    data: dict[str, Any] = {
        "uri": where.document.uri,
        "version": where.document.version,
        "opened": where.document.opened,
        "range": span or where.range,
        "instruction": instruction,
        "withComment": comment,
    }
    return types.CodeAction(title=title, kind=kind, data=data)


def _fix(where: ActionContext, diagnostic: types.Diagnostic) -> types.CodeAction:
    message = " ".join(str(diagnostic.message).split())[:200]
    action = _ready_made(
        where,
        f"Redraft: fix “{message[:60]}”",
        f"fix this problem: {message}",
        types.CodeActionKind.QuickFix,
        diagnostic.range,
    )
    action.diagnostics = [diagnostic]
    return action


def _is_other_text(document: Document, line: int, comment: InstructionComment) -> bool:
    """Return True if ``comment``, which looks like one after code, is a string or an operator in
    the language of ``document``."""
    if comment.alone or len(document.text) > LONGEST_PARSED:
        return False
    text = document.lines[line]
    mark = len(text) - len(text[comment.start :].lstrip())
    tree = SyntaxTree.of(document.text, document.language)
    offset = document.offset(Position(line, mark))
    return tree is not None and tree.role_at(offset) is not Role.COMMENT


def _comments(where: ActionContext) -> list[types.CodeAction]:
    lines = where.document.lines
    first, last = max(0, where.range.start.line), min(where.range.end.line, len(lines) - 1)
    actions: list[types.CodeAction] = []
    if INSTRUCTION_MARK not in "".join(lines[first : last + 1]).lower():
        return actions
    for number in range(first, last + 1):
        comment = instruction_comment(lines[number])
        if comment is None or _is_other_text(where.document, number, comment):
            continue
        end = block_of(lines, number, comment)
        if end is not None:
            span = types.Range(types.Position(number, 0), types.Position(end + 1, 0))
            title = f"Redraft: {comment.instruction[:60]}"
            actions.append(_ready_made(where, title, comment.instruction, span=span, comment=True))
    return actions
