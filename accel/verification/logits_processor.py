"""Changes of logits before a token is chosen: biases and penalties, in the order of vLLM and
llama.cpp. In a draft tree every node has its own, of prompt, text and path: drafts stay
lossless."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.verification.sampling import Sampling

Logits = NDArray[np.float32]


class LogitsProcessor:
    """The biases and penalties of one request. Told its text as it grows."""

    def __init__(self, sampling: Sampling, prompt: TokenArray) -> None:
        """``prompt``: int32 [n], what the text goes on from."""
        self._sampling = sampling
        self._prompt_length = len(prompt)
        self._tokens = np.array(prompt, np.int32)
        """The prompt and the text so far."""
        biases = dict(sampling.logit_bias)
        self._biased = np.array(list(biases), np.int64)
        self._biases = np.array(list(biases.values()), np.float32)

    def scores(self, logits: Logits, text: Sequence[int], above: Sequence[int]) -> Logits:
        """Return the scores by which the token after ``text`` and ``above`` is chosen.

        logits: float32 [vocabulary], as the model gives them, never written to. text: the tokens
        generated so far; above: those on the path to the node.
        """
        sampling = self._sampling
        if not sampling.changes_logits:
            return logits
        scores = logits.copy()
        scores[self._biased] += self._biases
        if sampling.penalises:
            self._note(text)
            tokens = self._tokens
            if above:
                tokens = np.concatenate([tokens, np.array(above, np.int32)])
            self._penalise(scores, tokens)
        return scores

    def _note(self, text: Sequence[int]) -> None:
        counted = len(self._tokens) - self._prompt_length
        if len(text) > counted:
            new = np.array(text[counted:], np.int32)
            self._tokens = np.concatenate([self._tokens, new])

    def _penalise(self, scores: Logits, tokens: TokenArray) -> None:
        """Make scores of tokens less likely that are among ``tokens``, prompt and text."""
        sampling, text = self._sampling, tokens[self._prompt_length :]
        if sampling.last_tokens is not None:
            repeated = counted = tokens[max(len(tokens) - sampling.last_tokens, 0) :]
        else:
            repeated = tokens if sampling.penalise_prompt else text
            counted = text
        if sampling.repetition_penalty != 1:
            penalise_repetition(scores, sampling.repetition_penalty, repeated)
        if sampling.frequency_penalty or sampling.presence_penalty:
            tokens_seen, counts = np.unique(counted, return_counts=True)
            scores[tokens_seen] -= counts.astype(np.float32) * np.float32(
                sampling.frequency_penalty
            ) + np.float32(sampling.presence_penalty)


def penalise_repetition(scores: Logits, penalty: float, tokens: TokenArray) -> None:
    """Make seen tokens less likely, in place (CTRL, Keskar et al. 2019, as in transformers)."""
    old = scores[tokens]
    scores[tokens] = np.where(old < 0, old * np.float32(penalty), old / np.float32(penalty))
