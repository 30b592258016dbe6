"""Which model serves which purpose, and who decided it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lsp_server.editor.hub.hub import Hub
from lsp_server.editor.notices.status import Condition, Performance, status_message
from lsp_server.models.choices import Choices, write_choice
from lsp_server.models.used import CHOICE, NOTHING, UsedModel, command_model, used_models
from lsp_server.shared.settings import read_settings

COMPLETION, EDIT, PATH = "redraft.completion.model", "redraft.edit.model", "redraft.model.path"


@pytest.mark.parametrize(
    ("values", "choices", "completion", "edits"),
    [
        ({}, Choices(), ("", NOTHING), ("", NOTHING)),
        ({}, Choices("a"), ("a", CHOICE), ("a", CHOICE)),
        ({}, Choices("a", "b"), ("a", CHOICE), ("b", CHOICE)),
        ({}, Choices(edits="b"), ("", NOTHING), ("b", CHOICE)),
        ({"model": {"path": "p"}}, Choices(), ("p", PATH), ("p", PATH)),
        ({"completion": {"model": "c"}}, Choices("a"), ("c", COMPLETION), ("a", CHOICE)),
        (
            {"model": {"path": "p"}, "edit": {"model": "e"}},
            Choices("a", "b"),
            ("p", PATH),
            ("e", EDIT),
        ),
    ],
)
def test_a_setting_goes_before_a_choice_and_what_is_of_the_purpose_before_what_is_not(
    values: dict[str, Any], choices: Choices, completion: tuple[str, str], edits: tuple[str, str]
) -> None:
    settings = read_settings(values).settings
    used = used_models(settings, choices)
    assert (used.completion.path, used.completion.because) == completion
    assert (used.edits.path, used.edits.because) == edits
    named = used.put_into(settings)
    assert (named.completion_model, named.edit_model) == (completion[0], edits[0])


def test_a_chosen_draft_model_is_used_with_the_chosen_model_alone() -> None:
    choices = Choices("a", drafts="small")
    assert used_models(read_settings(None).settings, choices).drafts.path == "small"
    for values in ({"model": {"path": "p"}}, {"edit": {"model": "e"}}):
        assert used_models(read_settings(values).settings, choices).drafts.path == ""
    own = read_settings({"edit": {"draftModel": "mine"}}).settings
    used = used_models(own, choices)
    assert used.drafts == UsedModel("mine", "redraft.edit.draftModel", "small")
    assert used.put_into(own).edit.draft_model == "mine"


def message(values: dict[str, Any], choices: Choices) -> dict[str, Any]:
    """The status of an editor with these settings whose engines have not started."""
    hub = Hub()
    used = used_models(read_settings(values).settings, choices)
    settings = used.put_into(read_settings(values).settings)
    engines = hub.engine(settings), hub.engine(settings, "edits")
    return status_message(Condition(True, False, *engines, used, [], Performance()))


def test_the_status_names_both_models_and_who_decided() -> None:
    told = message({"edit": {"model": "e"}}, Choices("a", "b"))
    assert (told["model"], told["editModel"]) == ("a", "e")
    assert told["models"]["completion"]["because"] == CHOICE
    assert told["models"]["edits"]["because"] == EDIT
    assert told["modelNotes"] == [f"edits: the setting {EDIT} goes before b of `{CHOICE}`"]


def test_the_status_says_nothing_where_setting_and_choice_agree() -> None:
    assert message({"model": {"path": "a"}}, Choices("a"))["modelNotes"] == []
    assert message({}, Choices("a", "b"))["modelNotes"] == []


def test_a_command_is_for_what_was_chosen_unless_it_names_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert command_model(None) == ""
    write_choice("completion", "a.gguf")
    assert command_model(None) == "a.gguf"
    assert command_model("b.gguf") == "b.gguf"


def test_next_edits_have_a_model_of_their_own_where_one_was_chosen() -> None:
    without = used_models(read_settings(None).settings, Choices("a"))
    assert without.next_edits == without.completion
    values = {"model": {"path": "mine"}}
    chosen = used_models(read_settings(values).settings, Choices("a", next_edits="sweep"))
    assert (chosen.completion.path, chosen.next_edits.path) == ("mine", "sweep")
    values = {"nextEdits": {"model": "own"}}
    own = used_models(read_settings(values).settings, Choices("a", next_edits="sweep"))
    assert own.next_edits == UsedModel("own", "redraft.nextEdits.model", "sweep")
    assert own.put_into(read_settings(values).settings).next_edit_model == "own"
