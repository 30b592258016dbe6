"""Which order of a fill-in-the-middle prompt a model was trained for, by its loss."""

from __future__ import annotations

import math
from collections.abc import Callable

from accel.draft_tree import TokenArray
from accel.text.families import Order
from accel.text.prompts import fim_prompt
from accel.text.special_tokens import edit_format, fill_format, orders
from accel.text.tokenizer import Tokenizer

_SAMPLES = [
    (
        "def mean(values):\n    total = 0\n    for value in values:\n",
        "    return total / len(values)\n",
        "        total += value\n",
    ),
    (
        "class Stack:\n    def __init__(self):\n        self.items = []\n\n"
        "    def push(self, item):\n",
        "\n    def pop(self):\n        return self.items.pop()\n",
        "        self.items.append(item)\n",
    ),
    (
        "import os\n\n\ndef read_lines(path):\n    with open(path) as file:\n",
        "    return [line.strip() for line in lines]\n",
        "        lines = file.readlines()\n",
    ),
    (
        "def count_words(text):\n    counts = {}\n    for word in text.split():\n",
        "    return counts\n",
        "        counts[word] = counts.get(word, 0) + 1\n",
    ),
    (
        "def largest(numbers):\n",
        "    for number in numbers:\n        if number > best:\n            best = number\n"
        "    return best\n",
        "    best = numbers[0]\n",
    ),
    (
        "def parse(path):\n    try:\n        with open(path) as file:\n"
        "            data = json.load(file)\n",
        "        return None\n    return data\n",
        "    except OSError:\n",
    ),
    (
        "class Point:\n    def __init__(self, x, y):\n        self.x = x\n",
        "\n    def scaled(self, factor):\n        return Point(self.x * factor, self.y * factor)\n",
        "        self.y = y\n",
    ),
]

_FITS_TYPING = 1.02
"""Suffix first keeps the KV cache while typing, which is worth a little loss."""
_KNOWS_SUFFIX = 1.05
"""What stands behind the hole keeps a model from writing it again, which is worth more."""


Likelihood = Callable[[TokenArray, TokenArray], float]
"""From a prompt and a text behind it to the log likelihood of the text, in nats."""


def find_order(tokenizer: Tokenizer, likelihood: Likelihood | None) -> Order | None:
    """The order whose prompts make known middles likeliest; None without the tokens.

    Suffix first is taken when it is nearly as good as the best, and an order with the suffix when
    it is nearly as good as the prefix alone. Without ``likelihood`` it is the one that the
    tokenizer names.
    """
    form = fill_format(tokenizer)
    if form is None or likelihood is None:
        return form.order if form is not None else None
    # A vocabulary with our own edit tokens says which order its model was trained for.
    own = edit_format(tokenizer) is not None
    allowed = [form.order, Order.PREFIX_ALONE] if own else orders(form)
    losses = {order: _loss(tokenizer, likelihood, order) for order in allowed}
    alone = losses.pop(Order.PREFIX_ALONE)
    best = min(losses, key=losses.__getitem__)
    if losses[best] > _KNOWS_SUFFIX * alone:
        return Order.PREFIX_ALONE
    first = losses.get(Order.SUFFIX_FIRST, math.inf)
    return Order.SUFFIX_FIRST if first <= _FITS_TYPING * losses[best] else best


def _loss(tokenizer: Tokenizer, likelihood: Likelihood, order: Order) -> float:
    """Mean negative log likelihood of a middle's token, in nats."""
    total, count = 0.0, 0
    for prefix, suffix, middle in _SAMPLES:
        prompt = fim_prompt(tokenizer, prefix, suffix, order=order)
        # The healed end of the prefix belongs to what is predicted.
        target = tokenizer.encode(prompt.required_prefix.decode() + middle)
        total, count = total - likelihood(prompt.tokens, target), count + len(target)
    return total / max(count, 1)
