"""What of the model's text is shown: golden cases."""

from __future__ import annotations

from text_cases import data_cases

from lsp_server.editor.completion.postfilter import shown_text
from lsp_server.editor.completion.request import CompletionRequest


@data_cases()
def test_what_is_shown_and_filtering_again_changes_nothing(
    prefix: str, text: str, suffix: str, shown: str
) -> None:
    assert shown_text(text, prefix, suffix) == shown
    assert shown_text(shown, prefix, suffix) == shown


@data_cases()
def test_several_lines_only_where_a_block_may_follow(
    before: str, after: str, several: bool
) -> None:
    ask = CompletionRequest("d", "d.py", "", "python", f"x\n{before}", f"{after}\nx")
    assert ask.wants_several_lines is several
