"""Candidates for a line, and the choice among them by what follows."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from small_model import SMALL_MODEL
from tiny_models import numbers

from accel.decoding import infilling as lines_of
from accel.decoding.engine import Engine
from accel.decoding.infilling import Line, LineSearch, is_between_lines
from accel.execution.forwards import alone
from accel.models.batch import chain_batch
from accel.text.prompts import Prompt, fim_prompt

BEFORE = '''def mean(values):
    """The mean of the values."""
    total = 0
'''
AFTER = """        total += value
    return total / len(values)
"""


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine.load(SMALL_MODEL, dtype="fp32", threads=1)


def _prompt(engine: Engine, prefix: str, suffix: str) -> Prompt:
    return fim_prompt(engine.tokenizer, prefix, suffix, order=engine.fim_order)


def _chances(engine: Engine, tokens: list[int], last: int) -> np.ndarray:
    """Log-probabilities behind each of the last tokens, by one plain forward."""
    batch = chain_batch(np.array(tokens, np.int32), len(tokens) - last)
    logits = numbers(engine.model, batch, engine.model.new_cache(64)).astype(np.float64)
    highest = logits.max(-1, keepdims=True)
    return logits - highest - np.log(np.exp(logits - highest).sum(-1, keepdims=True))


def _slow_candidates(engine: Engine, prompt: Prompt) -> list[tuple[tuple[int, ...], float]]:
    """The same search, every beam by a forward over all of its text."""
    tokenizer, width = engine.tokenizer, lines_of.WIDTH
    ends = prompt.stop_tokens | engine.end_tokens
    beams: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    found: list[tuple[tuple[int, ...], float]] = []
    for _ in range(lines_of.LONGEST):
        following = []
        for tokens, score in beams:
            chance = _chances(engine, [*prompt.tokens.tolist(), *tokens], 1)[0]
            spelt = tokenizer.decode_bytes(list(tokens))
            visible = bool(spelt[len(prompt.required_prefix) :].strip())
            if visible:
                closing = sum(
                    math.exp(chance[token]) for token in {*ends, *tokenizer.newline_tokens}
                )
                if closing >= lines_of.LIKELY:
                    found.append((tokens, score + math.log(closing)))
            for token in range(tokenizer.vocabulary_size):
                piece = spelt + tokenizer.bytes_of(token)
                typed = prompt.required_prefix
                agrees = piece.startswith(typed) or typed.startswith(piece)
                if token in ends or token in tokenizer.special_tokens or not agrees:
                    continue
                if not (visible and token in tokenizer.newline_tokens):
                    following.append(((*tokens, token), score + float(chance[token])))
        found = sorted(found, key=lambda line: -line[1])[:width]
        least = found[-1][1] if len(found) == width else -math.inf
        beams = sorted(following, key=lambda beam: -beam[1])[:width]
        beams = [beam for beam in beams if beam[1] > least]
        if not beams:
            break
    return found


@pytest.mark.parametrize("typed", ["", "    ", "    for v"])
def test_candidates_are_those_of_a_search_without_trees(engine, monkeypatch, typed):
    monkeypatch.setattr(lines_of, "WIDTH", 3)
    monkeypatch.setattr(lines_of, "LONGEST", 9)
    prompt = _prompt(engine, BEFORE + typed, "\n" + AFTER)
    found = alone(LineSearch(engine).candidates(prompt, engine.session()))
    expected = _slow_candidates(engine, prompt)
    assert [line.tokens for line in found] == [tokens for tokens, _ in expected]
    for line, (_, score) in zip(found, expected, strict=True):
        assert line.score == pytest.approx(score, abs=1e-3)
    for line in found:
        spelt = engine.tokenizer.decode_bytes(list(line.tokens))
        assert spelt.startswith(prompt.required_prefix)


def test_the_fitting_line_is_the_likeliest_together_with_what_follows(engine):
    rng = random.Random(3)
    search, tokenizer = LineSearch(engine), engine.tokenizer
    before, after = tokenizer.encode(BEFORE), tokenizer.encode("\n" + AFTER)
    texts = ["    for value in values:", "    return total", "    for value in total:", "    x = 1"]
    for case in range(4):
        chosen = rng.sample(texts, 3)
        lines = [Line(tuple(tokenizer.encode(text).tolist()), 0.0, 1.0) for text in chosen]
        totals = []
        for line in lines:
            joint = [*before.tolist(), *line.tokens, *after[: lines_of.READ_AFTER].tolist()]
            count = len(joint) - len(before)
            chances = _chances(engine, joint[:-1], count)
            totals.append(sum(chances[place, joint[len(before) + place]] for place in range(count)))
        best = lines[int(np.argmax(totals))]
        assert alone(search.fitting(lines, before, after, engine.session())) == best, f"case {case}"


def test_lines_with_a_beginning_in_common_are_read_as_branches(engine):
    tree, paths = lines_of._read_tree([(5, 6, 7), (5, 6), (5, 8)], [1, 2])
    assert len(tree) == 4 + 3 * 2
    spelt = [[int(tree.tokens[node]) for node in path] for path in paths]
    assert spelt == [[5, 6, 7, 1, 2], [5, 6, 1, 2], [5, 8, 1, 2]]
    for path in paths:
        assert [int(tree.parents[node]) for node in path] == [-1, *path[:-1]]


def test_many_long_lines_leave_less_room_for_what_follows():
    lines = [tuple(range(first, first + 40)) for first in range(100, 340, 40)]
    tree, paths = lines_of._read_tree(lines, list(range(24)))
    assert len(tree) <= lines_of.MOST_ROWS
    assert {len(path) for path in paths} == {42}


def test_a_cancelled_search_finds_nothing(engine):
    prompt = _prompt(engine, BEFORE, "\n" + AFTER)
    search = LineSearch(engine)
    assert alone(search.candidates(prompt, engine.session(), lambda: True)) == []
    sessions = engine.session(), engine.session()
    assert alone(search.missing(prompt, *sessions, lambda: True)) is None
    line = Line((5,), 0.0, 1.0)
    nothing = alone(
        search.fitting([line], prompt.text, prompt.text, engine.session(), lambda: True)
    )
    assert nothing is None


def _found(lines):
    """A search that needs no forwards."""
    yield from ()
    return lines


def test_nothing_is_missing_where_the_text_is_likely_to_go_on(engine, monkeypatch):
    prompt = _prompt(engine, BEFORE, "\n" + AFTER)
    search = LineSearch(engine)
    line = Line((5,), 0.0, lines_of.SURE - 0.01)
    monkeypatch.setattr(search, "candidates", lambda *_: _found([line]))
    assert alone(search.missing(prompt, engine.session(), engine.session())) is None
    line = Line((5,), 0.0, lines_of.SURE)
    assert alone(search.missing(prompt, engine.session(), engine.session())) == line


@pytest.mark.parametrize(
    ("suffix", "between"),
    [
        ("\n    return total\n", True),
        ("\r\n    return total\r\n", True),
        ("   \n    return total", True),
        ("\n\n    return total\n", False),
        (")\n    return total\n", False),
        ("\n", False),
        ("", False),
    ],
)
def test_a_line_is_missing_where_text_stands_right_below(suffix, between):
    assert is_between_lines(suffix) is between
