"""Renames learnt, spoken and applied, and indentation."""

from __future__ import annotations

import numpy as np
import pytest
from edit_words import WordCodec
from text_cases import data_cases

from accel.drafting.copy.rewrites import (
    learn_rename,
    rewrite,
    shown_at,
    spoken_phrases,
    spoken_renames,
    still_due,
)

CODE = "def connect(host, port):\n    ghost = host.name\n    return host\n"


@data_cases()
def test_a_change_becomes_a_rule_or_none(left, old, new, right, expected):
    assert learn_rename(left, old, new, right) == (expected and tuple(expected))


@data_cases()
def test_renames_are_read_from_instructions(instruction, expected):
    assert spoken_renames(instruction, CODE) == [tuple(pair) for pair in expected]


def test_phrases_are_what_the_code_has_not():
    phrases = spoken_phrases('Add "Open a socket." and call log_it(host), not `connect`', CODE)
    assert phrases == ["Open a socket.", "log_it(host)"]


@pytest.mark.parametrize("shift", [-4, 0, 4])
def test_a_rewritten_text_is_the_text_rewritten(shift):
    codec = WordCodec(CODE, "server\n        ")
    original = codec.encode(CODE)
    version = rewrite(codec, original, 0, [("host", "server"), ("port", "p")], shift)
    expected = CODE.replace("ghost", "GHOST").replace("host", "server").replace("port", "p")
    lines = expected.replace("GHOST", "ghost").split("\n    ")
    assert codec.decode(version.tokens) == ("\n" + " " * (4 + shift)).join(lines)


def test_offsets_lead_back_to_the_original():
    codec = WordCodec(CODE, "server")
    original = codec.encode(CODE)
    version = rewrite(codec, original, 2, [("host", "server . of . it")], 0)
    for position, token in enumerate(version.tokens):
        if version.rules[position] < 0:
            assert original[version.offsets[position]] == token
        else:
            assert codec.pieces[original[version.offsets[position]]].strip() == "host"
    assert (version.offsets[1:] >= version.offsets[:-1]).all()


def test_the_original_is_found_in_a_prompt_though_its_ends_are_other_tokens_there():
    text = np.arange(40, dtype=np.int32)
    prompt = np.concatenate([[50, 51, 99], text[1:-1], [98, 52]]).astype(np.int32)
    assert shown_at(prompt, text) == (2, 42)
    assert shown_at(prompt, np.append(text[:20], text[:20])) == (len(prompt), len(prompt))
    assert shown_at(text, text) == (0, 40)
    assert shown_at(text, text[30:36]) == (30, 36)
    assert shown_at(text, text[:0]) == (40, 40)


def test_renames_that_are_still_due():
    assert still_due([("a.b", "c"), ("d", "e")], "a.b = f(dd)") == [("a.b", "c")]
