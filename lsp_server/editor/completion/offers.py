"""Remembers which suggestions were shown and whether the user took them."""

from __future__ import annotations

import itertools
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from lsp_server.editor.completion.acceptance_rates import AcceptanceRates
from lsp_server.editor.completion.request import CompletionRequest

MAX_OFFERS = 128
SEEN_S = 0.3
"""A suggestion that went sooner was not read, so it was not turned down either."""


@dataclass(slots=True)
class Offer:
    """One suggestion, as it was first shown, and its alternatives."""

    id: int
    ask: CompletionRequest
    texts: list[str]
    left: int
    """Characters of the first that are not typed yet."""
    shown: float
    settled: bool = False

    @property
    def text(self) -> str:
        """The one that the editor shows first."""
        return self.texts[0]

    @property
    def several(self) -> bool:
        """True if it has more than one line."""
        return "\n" in self.text.strip()

    def goes_on(self, ask: CompletionRequest, text: str) -> bool:
        """Return True if ``text`` at ``ask`` is the rest of this offer, or begins with it: after
        more typing the model may be sure of more."""
        if not ask.prefix.startswith(self.ask.prefix) or ask.suffix != self.ask.suffix:
            return False
        offered, now = self.ask.prefix + self.text, ask.prefix + text
        longer = now.startswith(offered) and len(offered) > len(ask.prefix) and not self.settled
        return now == offered or longer

    def typed(self, ask: CompletionRequest) -> bool:
        """Return True if all of it is before the cursor now."""
        return ask.prefix.startswith(self.ask.prefix + self.text)


class Offers:
    """The suggestions of one client."""

    def __init__(self, rates: AcceptanceRates) -> None:
        self._rates = rates
        self._ids = itertools.count(1)
        self._known: OrderedDict[int, Offer] = OrderedDict()
        self._newest: dict[str, Offer] = {}

    def show(self, ask: CompletionRequest, texts: list[str]) -> int:
        """Suggestions are shown; what was shown before them in the document has been judged.
        Returns the id of the offer, 0 for none."""
        before = self._newest.get(ask.document)
        if before is not None:
            if texts and before.goes_on(ask, texts[0]):
                typed = len(ask.prefix) - len(before.ask.prefix)
                before.texts[0] = before.text[:typed] + texts[0]
                before.left = len(texts[0])
                return before.id
            self._settle(before, ask)
        if not texts:
            return 0
        offer = Offer(next(self._ids), ask, texts, len(texts[0]), time.monotonic())
        self._newest[ask.document] = self._known[offer.id] = offer
        while len(self._known) > MAX_OFFERS:
            self._known.popitem(last=False)
        return offer.id

    def accepted(self, outcome: dict[str, Any]) -> tuple[CompletionRequest, str] | None:
        """An item was taken: ``{id, number?, length?}``, the length where only a part was. Where it
        was and what of it was taken; None for an offer that is not known, or was told."""
        number, length = outcome.get("number", 0), outcome.get("length")
        offer = self._known.get(outcome["id"]) if isinstance(outcome.get("id"), int) else None
        if offer is None or not isinstance(number, int) or not 0 <= number < len(offer.texts):
            return None
        text = offer.texts[number]
        if number == 0 and isinstance(length, int):
            text = text[: max(0, len(text) - offer.left) + max(0, length)]
        first = not offer.settled
        if first:
            self._learn(offer, True)
        return (offer.ask, text) if first and text else None

    def put_in(self, document: str, prefix: str) -> dict[str, Any] | None:
        """Return the outcome of the newest suggestion of ``document`` if the text up to the end of
        a change, ``prefix``, ends with all of it; None otherwise, or if that is known."""
        offer = self._newest.get(document)
        if offer is None or offer.settled:
            return None
        complete = (
            number for number, text in enumerate(offer.texts) if prefix == offer.ask.prefix + text
        )
        number = next(complete, None)
        return None if number is None else {"id": offer.id, "number": number}

    def close(self, document: str) -> None:
        """A document was closed."""
        self._newest.pop(document, None)

    def _settle(self, offer: Offer, ask: CompletionRequest) -> None:
        if offer.settled:
            return
        if offer.typed(ask):
            self._learn(offer, True)
        elif time.monotonic() - offer.shown >= SEEN_S:
            self._learn(offer, False)

    def _learn(self, offer: Offer, accepted: bool) -> None:
        offer.settled = True
        self._rates.learn(offer.ask.language, offer.several, accepted)
