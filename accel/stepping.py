"""Steps of a generation that are made several at a time, see ``accel.compiled_steps``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from accel.choice import Choice
from accel.compiled_stage import MOST_STEPS, Limits, Made, Steps
from accel.draft_tree import TokenArray
from accel.request import Chunk, GenerationRequest
from accel.sources.mixture_room import NOT_COMMITTED
from accel.sources.protocol import Speculating
from accel.statistics import Statistics
from accel.transcript import Transcript
from accel.trust import Trust

if TYPE_CHECKING:
    from accel.engine import Engine
    from accel.session import Session

MOST_S = 1.6e-2
"""Seconds of steps at a time, a frame of a screen: for so long nobody sees tokens. Whoever wants
them to end sooner interrupts them."""

LONG_STEP_S = 2.5e-3
"""Such steps are made one at a time: to make several would gain little."""


def most_steps(step_s: float) -> int:
    """Steps at a time, where one takes so many seconds; below two there is nothing to gain."""
    return min(int(MOST_S / step_s), MOST_STEPS) if step_s <= LONG_STEP_S else 1


class Stepper:
    """Makes steps for one request whose tokens are taken or drawn without a look at whole logits,
    plainly or with a drafter that speculates."""

    def __init__(
        self,
        engine: Engine,
        session: Session,
        request: GenerationRequest,
        speculator: Speculating | None,
        *,
        ends: frozenset[int],
    ) -> None:
        """``ends``: tokens at which the text ends."""
        self._engine, self._session, self._request = engine, session, request
        self._speculator = speculator
        self._interruptions = 0
        self._pauses = np.zeros(engine.model.vocabulary_size, np.bool_)
        looked_at = ends if request.stop_rule is None else ends | engine.tokenizer.newline_tokens
        self._pauses[[token for token in looked_at if token < len(self._pauses)]] = True

    def note_interruptions(self) -> None:
        """``Engine.interrupt`` ends steps from now on: one that comes between the question whether
        to go on, which is asked after this, and the steps does, too."""
        self._interruptions = self._engine.model.interruptions

    def run(
        self,
        pending: TokenArray,
        written: Transcript,
        choice: Choice,
        trust: Trust,
        statistics: Statistics,
    ) -> Chunk | None:
        """What steps behind the text's last token brought, None where one has to be made by
        itself."""
        session, speculator, past = self._session, self._speculator, self._session.length
        limits = self._limits(written)
        if limits.steps < 2 or limits.tokens < 2 or len(pending) > 1 or written.rest:
            return None
        drafting = None
        if speculator is not None:
            asking = speculator.asking()
            if asking is None:
                return None
            drafting = asking, choice.odds(self._engine.planner.chains(1, past))
        draws = self._request.sampling.draws_at(len(written.tokens))
        made, left = self._engine.run_steps(int(pending[0]), drafting, session, limits, draws)
        tokens = left.tokens[: made.tokens].copy()
        count = written.take(tokens.tolist()) if made.steps else 0
        if speculator is not None:
            _tell(speculator, made, left, tokens[:count])
        if not made.steps:
            return None
        if made.past >= self._engine.max_positions:
            written.finish("length")
        session.take_over(past, pending, tokens[: min(made.tokens - 1, count)])
        trust.verified(made.verified_s / made.steps, made.expected_s / made.steps, made.steps)
        sources = left.sources[:count].copy()
        statistics.record_steps(made, left, sources)
        return Chunk(tokens[:count], sources, list(range(count)))

    def _limits(self, written: Transcript) -> Limits:
        """Up to where steps are made."""
        engine, request = self._engine, self._request
        step_s = engine.planner.seconds(1, self._session.length)
        return Limits(
            most_steps(step_s),
            request.max_tokens - len(written.tokens),
            request.max_nodes,
            engine.max_positions,
            MOST_S,
            self._pauses,
            self._interruptions,
        )


def _tell(speculator: Speculating, made: Made, left: Steps, tokens: TokenArray) -> None:
    """Tell a drafter where its text stops; ``tokens`` became text."""
    if made.length != NOT_COMMITTED:
        beyond = max(made.linked - len(tokens), 0)
        speculator.asked(made.stop - beyond, made.length, made.place)
    if made.steps:
        brought = int(left.accepted[made.steps - 1]) + 1
        speculator.stepped(tokens[made.linked :], brought)
