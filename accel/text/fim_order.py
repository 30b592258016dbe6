"""Which order of a fill-in-the-middle prompt suits a model: by its loss on holes in code, and by
what has to be computed again while somebody types."""

from __future__ import annotations

from collections.abc import Callable, Container

from accel.draft_tree import TokenArray
from accel.text.families import Order
from accel.text.fim_samples import FillSample, fill_samples
from accel.text.prompts import fim_prompt
from accel.text.special_tokens import FimFormat, orders
from accel.text.tokenizer import Tokenizer

Likelihood = Callable[[TokenArray, TokenArray, bytes], float]
"""From a prompt, a text after it and the bytes that the text has to begin with to the log
likelihood of the text, in nats."""

FIRST_SAMPLES = 9
"""After so many samples the orders that are far behind are given up."""
FAR_BEHIND = 1.25
"""Times the least loss."""
_FITS_TYPING = 1.02
"""An order that keeps the KV cache while one types is worth a little loss."""
_KNOWS_SUFFIX = 1.05
"""What comes after the hole keeps a model from writing it again, which is worth more."""


class OrderTrial:
    """The losses of a model's prompts by their order, sample after sample."""

    def __init__(self, tokenizer: Tokenizer, fim: FimFormat, likelihood: Likelihood) -> None:
        self._tokenizer, self._likelihood = tokenizer, likelihood
        self._samples = fill_samples()
        self._done = 0
        self._totals = dict.fromkeys(orders(fim), 0.0)

    def go_on(self, interrupted: Callable[[], bool] = lambda: False) -> dict[Order, float] | None:
        """The mean loss of a middle's byte, in nats, of every order that is not far behind; None
        where something came before all samples were looked at. Another call goes on from there."""
        while self._done < len(self._samples):
            sample = self._samples[self._done]
            losses = {}
            for order in self._totals:
                if interrupted():
                    return None
                losses[order] = self._loss(order, sample)
            for order, loss in losses.items():
                self._totals[order] += loss
            self._done += 1
            if self._done == FIRST_SAMPLES:
                limit = FAR_BEHIND * min(self._totals.values())
                self._totals = {o: total for o, total in self._totals.items() if total <= limit}
        count = sum(len(sample.middle.encode()) for sample in self._samples)
        return {order: total / count for order, total in self._totals.items()}

    def _loss(self, order: Order, sample: FillSample) -> float:
        """Negative log likelihood of a sample's middle, given what is typed of its first token."""
        prompt = fim_prompt(self._tokenizer, sample.prefix, sample.suffix, order=order)
        target = self._tokenizer.encode(prompt.required_prefix.decode() + sample.middle)
        return -self._likelihood(prompt.tokens, target, prompt.required_prefix)


def chosen_order(
    fim: FimFormat | None, losses: dict[Order, float], allowed: Container[Order]
) -> Order | None:
    """The order with the least loss among those that are ``allowed``; None without the tokens.

    Where nothing was measured it is that of the tokenizer, by lines where the prefix comes first.
    """
    if fim is None:
        return None
    if not losses:
        by_lines = fim.order == Order.PREFIX_FIRST and fim.middle is not None
        return Order.PREFIX_FIRST_BY_LINES if by_lines else fim.order
    costs = {order: loss for order, loss in losses.items() if order in allowed}
    if Order.PREFIX_FIRST in costs:
        costs[Order.PREFIX_FIRST] *= _FITS_TYPING
    if Order.PREFIX_ALONE in costs:
        costs[Order.PREFIX_ALONE] *= _KNOWS_SUFFIX
    return min(costs, key=costs.__getitem__, default=Order.PREFIX_ALONE)
