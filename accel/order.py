"""Which order of a fill-in-the-middle prompt a model was trained for, by its loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from accel.draft_tree import TokenArray
from accel.formats import Order, fill_format, orders
from accel.model import Capability
from accel.prompts import fim_prompt
from accel.rows import chain_rows

if TYPE_CHECKING:
    from accel.engine import Engine

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
]

_SUFFIX_FIRST_MAY_LOSE = 1.02
"""Suffix first keeps the KV cache while typing, which is worth a little loss."""


def find_order(engine: Engine) -> Order | None:
    """The order whose prompts make known middles likeliest; None without the tokens.

    Suffix first is taken when it is as good as the best.
    """
    form = fill_format(engine.tokenizer)
    if form is None:
        return None
    allowed = orders(form)
    if len(allowed) == 1 or engine.model.capability == Capability.PLAIN:
        return form.order
    losses = {order: _loss(engine, order) for order in allowed}
    best = min(losses, key=losses.__getitem__)
    if losses[Order.SUFFIX_FIRST] <= _SUFFIX_FIRST_MAY_LOSE * losses[best]:
        return Order.SUFFIX_FIRST
    return best


def _loss(engine: Engine, order: Order) -> float:
    """Mean negative log likelihood of a middle's token, in nats."""
    total, count = 0.0, 0
    for prefix, suffix, middle in _SAMPLES:
        prompt = fim_prompt(engine.tokenizer, prefix, suffix, order=order)
        # The healed end of the prefix belongs to what is predicted.
        target = engine.tokenizer.encode(prompt.required_prefix.decode() + middle)
        loss = _likelihood(engine, prompt.tokens, target)
        total, count = total + loss, count + len(target)
    return total / max(count, 1)


def _likelihood(engine: Engine, prompt: TokenArray, target: TokenArray) -> float:
    tokens = np.concatenate([prompt, target[:-1]]).astype(np.int32)
    logits = engine.forward(chain_rows(tokens, len(prompt) - 1), engine.session())
    scores = torch.log_softmax(logits.float(), -1)
    wanted = torch.from_numpy(target).to(scores.device, torch.long)
    return -float(scores.gather(-1, wanted[:, None]).sum())
