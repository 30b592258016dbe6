"""Samples as token ids: what they hold, in the prompts that editors send, and what counts."""

from __future__ import annotations

import json
import random
import re

import frozen_corpus
import numpy as np
import pytest
from tiny_models import byte_tokenizer

from accel.text.prompts import around_hole, edit_prompt
from accel.text.special_tokens import fim_format_of
from accel.text.tokenizer import Tokenizer
from tests.benchmarks.training.errors import TrainingError
from tests.benchmarks.training.made_up import MADE_UP
from tests.benchmarks.training.renamed_tokens import renamed
from tests.benchmarks.training.samples.code import CodeFile, CommitChange
from tests.benchmarks.training.samples.holes import HoleMaker
from tests.benchmarks.training.samples.sample import COPIED_WEIGHT, Sample, answered
from tests.benchmarks.training.samples.sample_maker import SampleMaker, Shares

FIM = ["<fim_prefix>", "<fim_suffix>", "<fim_middle>"]
CHAT = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
FILES = ["<repo_name>", "<file_sep>"]
TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"
    "{% endfor %}{{ '<|im_start|>assistant\\n' }}"
)


def tokenizer(*names: str, chat: bool = True) -> Tokenizer:
    made = Tokenizer(byte_tokenizer(specials=[*CHAT, *names]))
    made.chat_template = TEMPLATE if chat else None
    return made


def corpus() -> list[CodeFile]:
    return [
        CodeFile("harbour", path.name, path.read_text()) for path in frozen_corpus.files("harbour")
    ]


def commits() -> list[CommitChange]:
    return [
        CommitChange(
            file.path,
            "Return the total in dollars",
            file.text,
            re.sub(r"return (\w+)\n", r"return dollars(\1)\n", file.text),
        )
        for file in corpus()
    ]


def maker(tokens: Tokenizer, seed: int = 0) -> SampleMaker:
    end = tokens.special("<|im_end|>")
    assert end is not None
    return SampleMaker(tokens, corpus(), commits(), frozenset({end}), Shares(), seed, MADE_UP)


def parts(tokens: Tokenizer, sample: Sample) -> list[str]:
    """The text of a sample, cut behind each control token."""
    text = tokens.decode(sample.tokens)
    names = "|".join(map(re.escape, [*FIM, *CHAT, *FILES]))
    return [part for part in re.split(f"(?<=>)(?=.)|(?={names})", text, flags=re.S) if part]


def test_a_hole_is_what_stands_between_prefix_and_suffix() -> None:
    tokens = tokenizer(*FIM)
    texts = {file.text for file in corpus()}
    form = fim_format_of(tokens)
    assert form is not None
    drawn = maker(tokens)
    found = [sample for sample in (drawn.fill(900) for _ in range(60)) if sample is not None]
    assert len(found) > 20
    for sample in found:
        ids = sample.tokens
        cuts = [ids.index(each) for each in (form.prefix, form.suffix, form.middle)]
        assert ids[-1] == tokens.special("<|endoftext|>")
        assert cuts == sorted(cuts)
        before, after = ids[cuts[0] + 1 : cuts[1]], ids[cuts[1] + 1 : cuts[2]]
        middle = ids[cuts[2] + 1 : -1]
        whole = tokens.decode(before) + tokens.decode(middle) + tokens.decode(after)
        assert any(whole in text for text in texts), whole
        asked = around_hole(form, np.array(before), np.array(after))
        assert ids[cuts[0] : cuts[2] + 1] == asked.tolist()
        assert set(sample.weights[cuts[2] + 1 :]) == {1.0}
        assert all(sample.weights[cut] == 0 for cut in cuts)


def test_other_files_stand_in_front_and_do_not_count() -> None:
    tokens = tokenizer(*FIM, *FILES)
    drawn = maker(tokens)
    found = [sample for sample in (drawn.fill(2000) for _ in range(80)) if sample is not None]
    with_files = [one for one in found if tokens.special("<file_sep>") in one.tokens]
    assert len(found) > len(with_files) > 5
    for sample in with_files:
        start = sample.tokens.index(tokens.special("<fim_prefix>"))
        text = tokens.decode(sample.tokens[:start])
        assert text.startswith("<repo_name>harbour<file_sep>")
        assert text.endswith("<file_sep>")
        assert set(sample.weights[: start + 1]) == {0.0}
        inside = tokens.decode(sample.tokens[start + 1 : start + 12])
        assert any(inside.startswith(file.path) for file in corpus())


def test_edits_are_asked_as_editors_ask() -> None:
    tokens = tokenizer()
    drawn = maker(tokens, seed=3)
    found = [sample for sample in (drawn.edit(9000) for _ in range(60)) if sample is not None]
    assert len(found) > 20
    kinds = set()
    for sample in found:
        text = tokens.decode(sample.tokens)
        question, answer = text.split("<|im_start|>assistant\n")
        asked = re.search(r"Edit the code as instructed: (.*)\n", question)
        selection = re.search(r"The code to edit:\n```python\n(.*)\n```\n\nAnswer", question, re.S)
        assert asked is not None
        assert selection is not None
        kinds.add(asked[1])
        assert answer.startswith("```python\n")
        assert answer.endswith("```<|im_end|>")
        start = len(tokens.encode_prompt(f"{question}<|im_start|>assistant\n```python\n"))
        assert set(sample.weights[:start]) == {0.0}
        assert min(sample.weights[start:]) == COPIED_WEIGHT
        assert sample.weights[-1] == 1.0
        prompt = edit_prompt(tokens, asked[1], selection[1], language="python", budget=1 << 20)
        if "Before it" not in question and "After it" not in question and "File:" not in question:
            assert tokens.decode(prompt.tokens) == text[: len(tokens.decode(prompt.tokens))]
    assert "Return the total in dollars" in kinds
    assert len(kinds) > 10


def test_next_edits_end_with_the_window_as_it_becomes() -> None:
    tokens = tokenizer(*FILES)
    drawn = maker(tokens, seed=1)
    found = [sample for sample in (drawn.next_edit(4000) for _ in range(80)) if sample is not None]
    assert len(found) > 20
    mark = tokens.special("<file_sep>")
    for sample in found:
        pieces = tokens.decode(sample.tokens).split("<file_sep>")[1:]
        names = [piece.split("\n", 1)[0] for piece in pieces]
        path = names[-1].removeprefix("updated/")
        assert names[-3:] == [f"original/{path}", f"current/{path}", f"updated/{path}"]
        assert set(names[:-3]) <= {f"{path}.diff"}
        last = len(sample.tokens) - sample.tokens[::-1].index(mark)
        assert max(sample.weights[:last]) == 0.0
        assert sample.weights[-1] == 1.0


def test_one_seed_draws_one_row_of_samples() -> None:
    tokens = tokenizer(*FIM, *FILES)
    first, again, other = maker(tokens), maker(tokens), maker(tokens, seed=1)
    drawn = [first.draw(1500) for _ in range(10)]
    assert drawn == [again.draw(1500) for _ in range(10)]
    assert drawn != [other.draw(1500) for _ in range(10)]
    assert all(len(one.tokens) <= 1500 for one in drawn)


def test_kinds_follow_from_what_is_there() -> None:
    assert parts(tokenizer(), maker(tokenizer()).draw(9000))[0].startswith("<|im_start|>")
    only_holes = tokenizer(*FIM, chat=False)
    assert "<fim_prefix>" in only_holes.decode(maker(only_holes).draw(900).tokens)
    with pytest.raises(TrainingError, match="no sample can be drawn"):
        maker(tokenizer(chat=False))
    with pytest.raises(TrainingError, match="gives no sample of 20 tokens"):
        maker(only_holes).draw(20)


def test_what_an_answer_changes_counts_most() -> None:
    sample = answered([9, 9], [1, 2, 3, 4, 5], [1, 2, 7, 4, 5, 8])
    assert sample.tokens == [9, 9, 1, 2, 7, 4, 5, 8]
    copied = COPIED_WEIGHT
    assert sample.weights == [0, 0, copied, copied, 1, 1, copied, 1]


def test_holes_hold_something_and_end_before_line_ends() -> None:
    text = "\n".join(file.text for file in corpus())
    holes, rng = HoleMaker(text), random.Random(4)
    found = [holes.draw(rng) for _ in range(300)]
    assert None not in found
    spans = [span for span in found if span is not None]
    assert all(text[start:end].strip() for start, end in spans)
    at_line_ends = [end for _, end in spans if text[end : end + 1] == "\n"]
    assert len(at_line_ends) > 240
    assert sum("\n" in text[start:end] for start, end in spans) > 60
    assert HoleMaker("\n\n  \n").draw(rng) is None


def test_tokens_get_other_names_and_keep_their_ids() -> None:
    names = ["<issue_start>", "<issue_comment>", "<issue_closed>"]
    made = tokenizer(*names)
    other = renamed(made, dict(zip(names, FIM, strict=True)))
    assert [made.special(name) for name in names] == [other.special(name) for name in FIM]
    assert other.special("<issue_start>") is None
    assert other.encode("a <issue_start>").tolist() == made.encode("a <issue_start>").tolist()
    assert other.chat_template == TEMPLATE
    assert json.loads(byte_tokenizer())  # the definition itself stays what it is
