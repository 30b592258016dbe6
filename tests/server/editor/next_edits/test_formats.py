"""The exact prompts of each format, which one a model gets, and what answers are read as."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from text_cases import data_cases
from windows import TEXT, shown

from lsp_server.editor.next_edits.answers import NoWindow, read_answer
from lsp_server.editor.next_edits.prompts import (
    block_borders,
    expected_answer,
    holds_marks,
    prompt_pieces,
)
from lsp_server.tasks.next_edits.formats import FORMATS, NextEditFormat, fits, format_for

EDITED = """\
import math


def ring(outer, inner):
    return math.pi * (outer**2 - inner**2)


def disc(radius):
    return math.pi * radius**2
"""


def prompt_of(fmt: NextEditFormat, typing: bool = True) -> str:
    return "".join(text for text, _ in prompt_pieces(shown(fmt, typing=typing), fmt))


@data_cases()
def test_prompts_are_exact(name: str, typing: bool, wanted: str) -> None:
    assert prompt_of(FORMATS[name], typing) == wanted


@pytest.mark.parametrize("name", FORMATS)
def test_prompts_of_zeta_2_say_what_a_suggestion_made(name: str) -> None:
    fmt = FORMATS[name]
    window = shown(fmt)
    taken = replace(window, edits=tuple(replace(one, is_suggested=True) for one in window.edits))
    before, after = (
        "".join(text for text, _ in prompt_pieces(one, fmt)) for one in (window, taken)
    )
    marked = before.replace("--- a/shapes.py", "// User accepted prediction:\n--- a/shapes.py")
    assert after == (marked if name.startswith("zeta-2") else before)


ANSWERS = {
    "sweep-a": EDITED,
    "redraft": EDITED.rstrip("\n"),
    "sweep-b": EDITED.removeprefix("import math\n\n\n"),
    "zeta-1": f"<|editable_region_start|>\n{EDITED}<|editable_region_end|>",
    "zeta-2": f"{EDITED}>>>>>>> UPDATED\n",
    "zeta-2.1": f"<|marker_1|>{EDITED}<|marker_2|>",
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_are_read_back_as_windows(name: str) -> None:
    fmt = FORMATS[name]
    window = shown(fmt)
    made = read_answer(ANSWERS[name], window, fmt, is_whole=True)
    assert made.text == (EDITED if name != "sweep-b" else EDITED.removeprefix("import math\n"))
    place = made.text.index("radius")
    answered = made.answered_at(place)
    assert answered is not None
    assert ANSWERS[name][answered:].startswith("radius")


@pytest.mark.parametrize("name", ANSWERS)
def test_the_answer_that_is_expected_changes_nothing(name: str) -> None:
    fmt = FORMATS[name]
    window = shown(fmt)
    made = read_answer(expected_answer(window, fmt), window, fmt, is_whole=True)
    assert made.text == window.text


@pytest.mark.parametrize("name", ANSWERS)
def test_the_beginning_of_an_answer_is_the_beginning_of_a_window(name: str) -> None:
    fmt = FORMATS[name]
    window, whole = shown(fmt), ANSWERS[name]
    for end in range(len(whole)):
        part = read_answer(whole[:end], window, fmt, is_whole=False).text
        lines = part[: part.rfind("\n") + 1]
        wanted = EDITED if name != "sweep-b" else EDITED.removeprefix("import math\n")
        assert wanted.startswith(lines.replace("<|user_cursor|>", ""))


def test_the_cursor_is_no_part_of_an_answer() -> None:
    fmt = FORMATS["zeta-2"]
    window = shown(fmt)
    answer = EDITED.replace("disc(radius", "disc(<|user_cursor|>radius")
    made = read_answer(f"{answer}>>>>>>> UPDATED", window, fmt, is_whole=True)
    assert made.text == EDITED
    place = made.answered_at(made.text.index("radius):"))
    assert place is not None
    assert answer[place:].startswith("radius):")


def test_words_for_nothing_change_nothing() -> None:
    fmt = FORMATS["zeta-2"]
    window = shown(fmt)
    made = read_answer("NO_EDITS\n>>>>>>> UPDATED", window, fmt, is_whole=True)
    assert made.text == window.text
    fmt = FORMATS["zeta-2.1"]
    made = read_answer("<|marker_2|><|marker_2|>", shown(fmt), fmt, is_whole=True)
    assert made.text == window.text


def test_only_the_blocks_between_markers_change() -> None:
    fmt = FORMATS["zeta-2.1"]
    lines = [f"value_{n} = {n}" for n in range(40)]
    lines[19] = ""
    window = shown(fmt, "".join(f"{line}\n" for line in lines), (20, 0))
    borders = block_borders(window.lines)
    assert len(borders) > 2
    assert all(6 <= two - one <= 16 for one, two in pairwise(borders))
    block = [*window.lines[borders[1] : borders[2]]]
    block[1] = "changed = True"
    text = "".join(f"{line}\n" for line in block)
    made = read_answer(f"<|marker_2|>{text}<|marker_3|>", window, fmt, is_whole=True)
    wanted = list(window.lines)
    wanted[borders[1] + 1] = "changed = True"
    assert made.text == "".join(f"{line}\n" for line in wanted)


@data_cases()
def test_an_answer_in_another_format_is_no_window(name: str, answer: str) -> None:
    fmt = FORMATS[name]
    with pytest.raises(NoWindow):
        read_answer(answer, shown(fmt), fmt, is_whole=True)


@pytest.mark.parametrize("name", FORMATS)
def test_a_text_with_a_mark_of_the_format_is_known(name: str) -> None:
    fmt = FORMATS[name]
    assert not holds_marks(shown(fmt), fmt)
    for mark in fmt.marks:
        text = TEXT.replace("import math", f"import math  # {mark}")
        assert holds_marks(shown(fmt, text), fmt), mark


@data_cases()
def test_the_format_is_chosen_by_names_and_vocabulary(
    names: str, tokens: list[str], wanted: str | None
) -> None:
    found = format_for(names, tokens.__contains__)
    assert (found and found.name) == wanted


@data_cases()
def test_a_model_with_an_adapter_of_ours_is_asked_as_it_was_trained(
    token: str, wanted: str | None
) -> None:
    found = format_for("any name", {token}.__contains__, is_ours=True)
    assert (found and found.name) == wanted


def test_a_format_fits_a_vocabulary_with_its_tokens_alone() -> None:
    assert fits(FORMATS["sweep-b"], {"<|file_sep|>"}.__contains__)
    assert not fits(FORMATS["sweep-b"], {"<file_sep>"}.__contains__)
