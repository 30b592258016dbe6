"""Instructions that name two pieces of code replace one by the other, or are left to the model."""

from __future__ import annotations

import pytest
from text_cases import data_cases

from lsp_server.editor.editing.hunks import apply_hunks
from lsp_server.editor.editing.renames import EditedPart
from lsp_server.editor.editing.replacements import settled_changes
from lsp_server.shared.errors import EditRefused


def replaced(instruction: str, text: str, language: str) -> str | None:
    changes = settled_changes(instruction, EditedPart(text, 0, len(text), language))
    return None if changes is None else apply_hunks(text, changes.hunks)


@data_cases()
def test_tokens_that_the_instruction_names_are_replaced_without_a_model(
    instruction: str, language: str, text: str, wanted: str
) -> None:
    assert replaced(instruction, text, language) == wanted


@data_cases()
def test_more_than_other_tokens_is_left_to_the_model(
    instruction: str, language: str, text: str
) -> None:
    assert replaced(instruction, text, language) is None


@data_cases()
def test_a_constant_that_gets_another_value_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(EditRefused, match=f"line {line} gets a value later"):
        replaced("use const instead of var", text, "javascript")


@data_cases()
def test_a_name_that_is_used_outside_of_its_block_stays_a_var(instruction: str, text: str) -> None:
    with pytest.raises(EditRefused, match="line 2 is used outside of its block"):
        replaced(instruction, text, "javascript")
