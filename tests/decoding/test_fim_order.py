"""The order of fill-in-the-middle prompts: holes of every kind, a race, and what typing costs."""

from __future__ import annotations

import numpy as np
import pytest
from small_model import SMALL_MODEL
from tiny_models import byte_tokenizer

from accel.decoding.engine import Engine
from accel.draft_tree import TokenArray
from accel.text.families import Order
from accel.text.fim_order import FIRST_SAMPLES, OrderTrial, chosen_order
from accel.text.fim_samples import FillSample, fill_samples
from accel.text.prompts import fim_prompt
from accel.text.special_tokens import fim_format_of
from accel.text.tokenizer import Tokenizer
from accel.verification.confidence import log_total

TOKENIZER = Tokenizer(byte_tokenizer(specials=["<fim_prefix>", "<fim_suffix>", "<fim_middle>"]))
FORM = fim_format_of(TOKENIZER)
assert FORM is not None
PREFIX, SUFFIX, MIDDLE = 256, 257, 258


def kind_of(sample: FillSample) -> str:
    """Where the hole is: whole lines, the end of a line, or inside one."""
    if sample.prefix.endswith("\n") or not sample.prefix:
        return "lines"
    return "end" if sample.suffix.startswith("\n") else "inside"


def test_there_are_holes_of_every_kind_from_the_beginning_on() -> None:
    samples = fill_samples()
    assert len(samples) >= 40
    assert len(set(samples)) == len(samples)
    for some in (samples[:FIRST_SAMPLES], samples):
        kinds = [kind_of(sample) for sample in some]
        assert min(kinds.count(kind) for kind in ("lines", "end", "inside")) >= len(some) // 6
    for sample in samples:
        assert sample.middle.strip()
        assert not set("⟦⟧") & set("".join(sample))


class Judged:
    """A model that finds every middle as likely as its prompt's order says."""

    def __init__(self, losses: dict[str, float]) -> None:
        self.losses = losses
        self.asked: list[str] = []

    def likelihood(self, prompt: TokenArray, target: TokenArray, required: bytes) -> float:
        assert TOKENIZER.decode_bytes(target).startswith(required)
        marks = "".join("psm"[t - PREFIX] for t in prompt.tolist() if t in (PREFIX, SUFFIX, MIDDLE))
        ends = "+" if marks == "psm" and prompt[-1] != MIDDLE else ""
        self.asked.append(marks + ends)
        return -self.losses.get(marks + ends, self.losses[marks]) * (len(target) - len(required))


def test_what_is_far_behind_is_looked_at_a_few_times_only() -> None:
    judged = Judged({"psm": 1.0, "spm": 3.0, "": 2.0})
    losses = OrderTrial(TOKENIZER, FORM, judged.likelihood).go_on()
    assert losses is not None
    assert losses.keys() >= {Order.PREFIX_FIRST, Order.PREFIX_FIRST_BY_LINES}
    assert Order.SUFFIX_PREFIX_MIDDLE not in losses
    assert judged.asked.count("") == FIRST_SAMPLES
    assert losses[Order.PREFIX_FIRST] == pytest.approx(1.0)


def test_a_trial_goes_on_where_it_was_interrupted() -> None:
    losses = {"psm": 1.0, "psm+": 0.8, "spm": 1.1, "": 2.0}
    whole = OrderTrial(TOKENIZER, FORM, Judged(losses).likelihood).go_on()
    stops = iter([False] * 7 + [True] + [False] * 20 + [True])
    trial = OrderTrial(TOKENIZER, FORM, Judged(losses).likelihood)
    rounds = 0
    while (found := trial.go_on(lambda: next(stops, False))) is None:
        rounds += 1
    assert rounds == 2
    assert found == whole


@pytest.mark.parametrize(
    ("losses", "is_quick", "wanted"),
    [
        ({}, True, Order.PREFIX_FIRST_BY_LINES),
        ({Order.PREFIX_FIRST: 0.9, Order.SUFFIX_FIRST: 1.0}, True, Order.PREFIX_FIRST),
        ({Order.PREFIX_FIRST: 0.9, Order.SUFFIX_FIRST: 1.0}, False, Order.SUFFIX_FIRST),
        (
            {Order.PREFIX_FIRST: 0.99, Order.PREFIX_FIRST_BY_LINES: 1.0},
            True,
            Order.PREFIX_FIRST_BY_LINES,
        ),
        ({Order.SUFFIX_FIRST: 1.0, Order.PREFIX_ALONE: 0.97}, True, Order.SUFFIX_FIRST),
        ({Order.SUFFIX_FIRST: 1.0, Order.PREFIX_ALONE: 0.9}, True, Order.PREFIX_ALONE),
    ],
)
def test_the_order_with_the_least_loss_that_keeps_up_with_typing(
    losses: dict[Order, float], is_quick: bool, wanted: Order
) -> None:
    allowed = [order for order in Order if is_quick or order != Order.PREFIX_FIRST]
    assert chosen_order(FORM, losses, allowed) == wanted


def test_a_vocabulary_without_such_tokens_has_no_order() -> None:
    assert chosen_order(None, {}, list(Order)) is None


def test_by_lines_a_letter_more_leaves_all_tokens_before_it() -> None:
    """Whatever is typed in a line, the suffix is not computed again, and neither is where the
    prompt is as long as it may be."""
    before = "".join(f"value_{n} = {n}\n" for n in range(200))
    line, after = "    return value_1 + value_2 * value_3", "\n\nprint(total)\n" * 40
    prompts = [
        fim_prompt(
            TOKENIZER,
            before + line[:typed],
            after,
            budget=400,
            suffix_budget=48,
            order=Order.PREFIX_FIRST_BY_LINES,
        )
        for typed in range(len(line) + 1)
    ]
    places = {prompt.tokens.tolist().index(MIDDLE) for prompt in prompts}
    assert len(places) == 1
    place = places.pop()
    for typed, prompt in enumerate(prompts):
        assert prompt.tokens[: place + 1].tolist() == prompts[0].tokens[: place + 1].tolist()
        behind = TOKENIZER.decode_bytes(prompt.tokens[place + 1 :]) + prompt.required_prefix
        assert behind.decode() == line[:typed]
        assert 0 < len(prompt.suffix_tokens) <= 48
        assert len(prompt.tokens) <= 400


def test_log_probabilities_are_the_softmax_among_what_is_allowed() -> None:
    rng = np.random.default_rng(seed := 5)
    logits = rng.normal(0, 4, 300).astype(np.float32)
    allowed = rng.choice(300, 40, replace=False)
    for among in (None, allowed):
        whole = np.arange(300) if among is None else among
        slow = np.exp(logits[whole].astype(np.float64))
        slow = dict(zip(whole.tolist(), (slow / slow.sum()).tolist(), strict=True))
        for token in whole[:10].tolist():
            found = logits[token] - log_total(logits[whole])
            assert found == pytest.approx(np.log(slow[token]), abs=1e-5), f"seed {seed}"


def test_the_order_of_an_engine_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Engine.load(SMALL_MODEL, threads=1)
    monkeypatch.setattr(Engine, "likelihood", None)
    again = Engine.load(SMALL_MODEL, threads=1)
    assert again.fim_order == first.fim_order
    assert again.fim_order is not None
