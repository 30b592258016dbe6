"""Edits of known kinds, made by rule, as drafts: right where the rule is, harmless where not."""

from __future__ import annotations

import numpy as np
import pytest
from edit_examples import BARE, FUNCTION, METHOD, edits_of
from small_model import SMALL_MODEL

from accel.draft_tree import TokenArray
from accel.drafting.base import DraftRequest
from accel.drafting.copy.drafter import CopyDrafter
from accel.drafting.copy.rewrites import version_of
from accel.replay import replay
from accel.text.edit_rules.markers import cut, cut_at
from accel.text.edit_rules.recognition import as_trained
from accel.text.edit_rules.source_region import apply
from accel.text.prompts import edit_prompt
from accel.text.tokenizer import Tokenizer
from accel.training.edits import EXACT_KINDS, EditExample

TOKENIZER = Tokenizer.from_folder(SMALL_MODEL)


def edits(kind: str) -> list[EditExample]:
    return edits_of(kind, FUNCTION, BARE, METHOD, seeds=20)


def expected_text(instruction: str, original: str) -> str:
    return apply(original, as_trained(instruction, original)[1])[0]


@pytest.mark.parametrize("kind", EXACT_KINDS)
def test_the_rule_makes_what_the_training_examples_have(kind: str) -> None:
    made = edits(kind)
    assert made
    right = [expected_text(edit.instruction, edit.before) == edit.after for edit in made]
    assert sum(right) >= 0.9 * len(right), [
        edit.instruction for edit, is_right in zip(made, right, strict=True) if not is_right
    ]


@pytest.mark.parametrize(
    ("instruction", "original"),
    [
        ("make it nicer", BARE),
        ("remove the docstring", BARE),
        ("remove comments", "x = 1\n"),
        ("remove comments", "def f(:\n    # no\n"),
        ("remove comments", ""),
        ("invert the if kept == other", FUNCTION),
        ("make nothing default to 3", BARE),
    ],
)
def test_nothing_is_expected_of_what_is_unknown(instruction: str, original: str) -> None:
    assert as_trained(instruction, original)[1] == []
    assert edit_prompt(TOKENIZER, instruction, original).expected_tokens is None


def test_the_function_that_is_named_is_the_one() -> None:
    two = "def f(a):\n    return a\n\n\ndef g(a):\n    return a\n"
    made = expected_text("make the function async in g", two)
    assert made == two.replace("def g", "async def g")


def test_a_version_stands_where_its_text_stands() -> None:
    original = TOKENIZER.encode(BARE)
    version = version_of(original, TOKENIZER.encode(f"async {BARE}"))
    assert version.tokens.tolist() == TOKENIZER.encode(f"async {BARE}").tolist()
    assert version.offsets[-5:].tolist() == list(range(len(original) - 5, len(original)))


def answer(edit: EditExample) -> TokenArray:
    """Tokens of the answer to a prompt with marks: what was put in begins with its own."""
    values = as_trained(edit.instruction, edit.before)[0][1::2]
    pieces = [
        part
        for number, piece in enumerate(cut(edit.after, edit.changed))
        for part in (cut_at(piece, values) if number % 2 else [piece])
    ]
    return np.concatenate([TOKENIZER.encode(piece) for piece in pieces])


def forwards(instruction: str, before: str, after: TokenArray) -> tuple[int, int]:
    """Tokens and forwards of a replay."""
    prompt = edit_prompt(TOKENIZER, instruction, before)
    request = DraftRequest(
        prompt.text,
        original=prompt.original_tokens,
        expected=prompt.expected_tokens,
        given=prompt.tokens,
    )
    end = TOKENIZER.special("<|endoftext|>")
    assert end is not None
    reference = np.append(after, np.int32(end)).astype(np.int32)
    statistics = replay(CopyDrafter(TOKENIZER, (end,)), request, reference, 128)
    return statistics.tokens, statistics.forwards


@pytest.mark.parametrize("kind", EXACT_KINDS)
def test_few_forwards_where_the_rule_is_right(kind: str) -> None:
    counts = [forwards(edit.instruction, edit.before, answer(edit)) for edit in edits(kind)[::7]]
    tokens, needed = (sum(column) for column in zip(*counts, strict=True))
    assert needed < tokens / 12, (tokens, needed)


def test_a_wrong_guess_costs_little() -> None:
    after = TOKENIZER.encode(FUNCTION.replace("kept = sum(prices)", "kept = max(prices)"))
    tokens, needed = forwards("remove the docstring", FUNCTION, after)
    _, without = forwards("make it the largest", FUNCTION, after)
    assert needed <= without + 4
    assert tokens == len(after) + 1
