"""Which code actions are offered, and what instruction comments are about."""

from __future__ import annotations

from typing import Any

from lsprotocol import types
from text_cases import data_cases

from lsp_server.editor.editing.code_actions import ActionContext, code_actions
from lsp_server.editor.editing.presets import LONGEST, PRESETS, presets_for
from lsp_server.editor.protocol.client_features import ClientFeatures
from lsp_server.models.manifest import DEFAULT_FILE, edits_of
from lsp_server.shared.settings import EditSettings
from lsp_server.text.documents.document import Document

TEXT = """import os


# redraft: add a docstring
@cache
def f(a):
    if a:
        return 1

    return 2


x = 1
"""


def offered(first: int, last: int, text: str = TEXT, **more: Any) -> list[types.CodeAction]:
    language = more.pop("language", "python")
    settings = EditSettings(preset_instructions=more.pop("own", []))
    document = Document("file:///a.py", language, 3, text)
    span = types.Range(types.Position(first, 0), types.Position(last, 0))
    where = ActionContext(
        *(document, span, more.pop("diagnostics", []), more.pop("only", [])),
        is_unasked=more.pop("is_unasked", False),
    )
    given = {name: more.pop(name, False) for name in ("withheld", "allowed")}
    done = more.pop("done", ())
    return code_actions(where, ClientFeatures(**more), settings, done=done, **given)


def test_what_a_models_card_names_is_offered_and_nothing_else() -> None:
    problem = types.Diagnostic(types.Range(types.Position(5, 0), types.Position(5, 3)), "unused")
    known = edits_of(DEFAULT_FILE)
    assert known
    has_all = 'def f(a: int) -> int:\n    """Nothing."""\n    return a  # back\n'
    found = offered(0, 3, has_all, done=known, own=["sort the lines"], diagnostics=[problem])
    titles = {one.title.removeprefix("Redraft: ") for one in found}
    assert titles == {*known, "sort the lines"}
    of_any = offered(0, 3, has_all, done=edits_of("other.gguf"), diagnostics=[problem])
    assert len(of_any) > len(found)
    assert any(one.kind == types.CodeActionKind.QuickFix for one in of_any)


@data_cases()
def test_ready_made_instructions_fit_the_selected_lines(code: str, wanted: list[str]) -> None:
    found = {one.title.removeprefix("Redraft: ") for one in offered(0, code.count("\n"), code)}
    assert found == {*wanted, "simplify"}


def test_of_half_a_statement_nothing_is_known_and_all_is_offered() -> None:
    found = {one.title.removeprefix("Redraft: ") for one in offered(0, 1, "    b, c]\n")}
    assert {"remove the docstring", "add type hints", "simplify"} <= found


def test_no_light_bulb_comes_at_every_cursor() -> None:
    problem = types.Diagnostic(types.Range(types.Position(5, 0), types.Position(5, 3)), "unused")
    for line in range(13):
        if line != 3:
            for given in ({}, {"withheld": True}, {"allowed": True}):
                assert offered(line, line, edit_command=True, is_unasked=True, **given) == []
            assert offered(line, line, edit_command=True), "who asks is answered"
    assert len(offered(3, 3, edit_command=True, is_unasked=True)) == 1, "the comment's instruction"
    fixes = offered(5, 5, edit_command=True, is_unasked=True, diagnostics=[problem])
    assert [one.kind for one in fixes] == [types.CodeActionKind.QuickFix]
    assert len(offered(5, 6, edit_command=True, is_unasked=True)) > 1, "lines are selected"


def test_an_instruction_comment_is_about_the_statement_below_it() -> None:
    action = next(one for one in offered(3, 3) if one.title == "Redraft: add a docstring")
    assert action.data["range"] == types.Range(types.Position(3, 0), types.Position(10, 0))
    assert action.data["instruction"] == "add a docstring"
    assert action.data["withComment"] is True
    assert action.data["version"] == 3


@data_cases()
def test_comments_of_many_languages(comment: str, instruction: str | None) -> None:
    actions = [one for one in offered(0, 0, comment + "\nx = 1\n") if one.data]
    assert [one.data["instruction"] for one in actions] == ([instruction] if instruction else [])


@data_cases()
def test_the_statement_below_a_comment(text: str, last: int) -> None:
    number = next(place for place, line in enumerate(text.split("\n")) if "redraft:" in line)
    action = next(one for one in offered(number, number, text) if one.data)
    assert action.data["range"] == types.Range(
        types.Position(number, 0), types.Position(last + 1, 0)
    )


@data_cases()
def test_a_comment_behind_code_is_about_that_statement(language: str, text: str, last: int) -> None:
    actions = offered(0, text.count("\n"), text, language=language)
    action = next(one for one in actions if one.data and one.data["withComment"])
    number = next(place for place, line in enumerate(text.split("\n")) if "redraft:" in line)
    assert action.data["range"] == types.Range(
        types.Position(number, 0), types.Position(last + 1, 0)
    )


@data_cases()
def test_operators_and_strings_are_no_comments(language: str, text: str) -> None:
    assert not [one for one in offered(0, 0, text, language=language) if one.data]


def test_a_comment_with_nothing_below_is_about_nothing() -> None:
    assert offered(0, 0, "# redraft: do it\n\n") == []


def test_the_question_is_asked_only_where_the_client_can_ask() -> None:
    assert offered(11, 11) == []
    (action,) = offered(11, 11, edit_command=True)
    assert action.command is not None
    assert action.command.command == "redraft.editWithInstruction"


def test_ready_made_instructions_need_a_selection_and_fit_the_language() -> None:
    titles = [one.title for one in offered(4, 10)]
    assert any("docstring" in title for title in titles)
    assert all(one.kind == types.CodeActionKind.RefactorRewrite for one in offered(4, 10))


def test_problems_can_be_fixed() -> None:
    span = types.Range(types.Position(6, 4), types.Position(6, 8))
    diagnostic = types.Diagnostic(span, "undefined\nname 'a'")
    (action,) = offered(6, 6, diagnostics=[diagnostic])
    assert action.kind == types.CodeActionKind.QuickFix
    assert action.data["range"] == span
    assert "undefined name 'a'" in action.data["instruction"]


@data_cases()
def test_only_the_kinds_that_are_asked_for(only: list[str], kinds: list[str]) -> None:
    diagnostic = types.Diagnostic(types.Range(types.Position(5, 0), types.Position(5, 1)), "x")
    found = offered(3, 9, diagnostics=[diagnostic], only=only)
    assert {str(getattr(one.kind, "value", one.kind)) for one in found} == set(kinds)


def test_the_mark_of_generated_code_where_it_is_known() -> None:
    assert all(
        one.tags == [types.CodeActionTag.LlmGenerated] for one in offered(3, 9, generated_tag=True)
    )
    assert all(one.tags is None for one in offered(3, 9))


def test_ready_made_instructions_suit_the_language() -> None:
    def titles(**more: Any) -> set[str]:
        return {one.title.removeprefix("Redraft: ") for one in offered(4, 10, **more)}

    assert titles() == {"add a docstring", "simplify", "add type hints"}
    assert titles(language="rust") == {"simplify"}


def test_own_instructions_come_first() -> None:
    long = "write it as our style guide says, with one statement a line and no abbreviations"
    first, second, *_ = offered(11, 12, own=[long, " sort ", ""])
    assert (first.data["instruction"], second.data["instruction"]) == (long, "sort")
    assert len(first.title) < 80


def test_clients_that_resolve_nothing_get_commands() -> None:
    plain = offered(11, 12)
    actions = offered(11, 12, unresolved_actions=True, apply_edit=True)
    assert [one.title for one in actions] == [one.title for one in plain]
    for action, other in zip(actions, plain, strict=True):
        assert action.command is not None
        assert action.command.command == "redraft.runEdit"
        # Each call opens a document of its own.
        given = [{**data, "opened": ""} for data in (*action.command.arguments, other.data)]
        assert given[0] == given[1]
        assert action.data is None
    assert offered(11, 12, unresolved_actions=True, apply_edit=False) == []


def test_in_a_file_that_is_held_back_only_a_selection_is_edited_and_it_can_be_allowed() -> None:
    (allow,) = offered(3, 3, withheld=True)
    assert allow.title == "Redraft: allow this file"
    assert allow.command is not None
    assert allow.command.command == "redraft.allowFile"
    assert allow.command.arguments == [{"uri": "file:///a.py"}]
    selected = offered(0, 9, withheld=True)
    assert len(selected) > 1
    assert all(one.data is None or not one.data["withComment"] for one in selected)
    back = offered(3, 3, allowed=True)[-1]
    assert back.command is not None
    assert back.command.command == "redraft.holdBackFile"
    assert offered(3, 3, withheld=True, only=["quickfix"]) == []
    (plain,) = offered(3, 3, withheld=True, unresolved_actions=True)
    assert plain.command is not None


def test_of_a_selection_that_is_too_long_to_be_looked_at_all_presets_are_offered() -> None:
    short = "def f(a: int) -> int:\n    return a\n"
    offered = [one.instruction for one in presets_for("python", [], (), short)]
    assert "add a docstring" in offered
    assert "remove the docstring" not in offered
    long = short * (LONGEST // len(short) + 1)
    assert presets_for("python", [], (), long) == list(PRESETS)
