"""Prompts of other programs: the window in them is found, in every format."""

from __future__ import annotations

import time

import pytest
from windows import shown

from lsp_server.editor.next_edits.prompts import expected_answer, expected_rewrites, prompt_pieces
from lsp_server.tasks.next_edits.formats import FORMATS
from lsp_server.tasks.next_edits.raw_prompts import raw_window


@pytest.mark.parametrize("name", FORMATS)
def test_the_answer_that_changes_nothing_is_what_is_expected(name: str) -> None:
    fmt = FORMATS[name]
    window = shown(fmt, typing=False)
    prompt = "".join(text for text, _ in prompt_pieces(window, fmt))
    found = raw_window(prompt)
    assert found is not None
    assert found.expected == expected_answer(window, fmt)
    assert found.rewrites[0] == ("radius", "outer")
    assert found.rewrites == expected_rewrites(window, fmt)


def test_a_prompt_as_sweeps_model_card_joins_it_is_known() -> None:
    prompt = "\n".join(
        [
            "<|file_sep|>a.py.diff",
            "original:",
            "count = 1",
            "updated:",
            "total = 1",
            "<|file_sep|>original/a.py",
            "count = 1",
            "print(count)",
            "<|file_sep|>current/a.py",
            "total = 1",
            "print(count)",
            "<|file_sep|>updated/a.py",
        ]
    )
    found = raw_window(prompt)
    assert found is not None
    assert found.expected == "total = 1\nprint(count)\n"
    assert found.rewrites == [("count", "total")]


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "def f(x):\n    return x\n",
        "<|fim_prefix|>a = <|fim_suffix|>\n<|fim_middle|>",
        "<|file_sep|>a.py\nx = 1\n<|file_sep|>b.py\n",
        "<|file_sep|>current/a.py\nx = 1\n",
        "<<<<<<< CURRENT\nx = 1\n=======\nx = 2\n>>>>>>> UPDATED\n",
        "<|editable_region_start|>\nx = 1\n<|editable_region_end|>\n",
    ],
)
def test_other_prompts_are_no_next_edits(prompt: str) -> None:
    assert raw_window(prompt) is None


def test_a_long_prompt_is_looked_through_quickly() -> None:
    for text in ("<|file_sep|>current/a\n" * 20_000, "-a\n" * 60_000, "<|marker_1|>" * 20_000,
                 "<|editable_region_start|>\n" * 20_000):  # fmt: skip
        started = time.process_time()
        raw_window(text)
        assert time.process_time() - started < 5
