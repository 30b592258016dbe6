"""EfficientEdit's drafting as published: reuse the rest of the original, else generate.

Peiding Wang et al., "Reuse or Generate? Accelerating Code Editing via Edit-Oriented Speculative
Decoding", 2025, section III. For comparison: our default for edits is ``reuse``.
"""

from __future__ import annotations

import numpy as np

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.drafting.base import Drafter, DraftRequest

GAMMA = 7
"""Draft length of the draft model, and the tokens that must match to reuse again (section IV.E)."""


class EfficientEditDrafter:
    """*Reuse* drafts the whole remaining original as one chain; a rejection is an edit location.

    *Generate* drafts ``gamma`` tokens of a draft model (none without one) and returns to *Reuse*
    as soon as the last ``gamma`` tokens of the output stand in the remaining original, at their
    first place there; what lies before is cut away for good.

    ``reuse`` off leaves plain speculative decoding with the draft model (rows of Table II).
    ``drop_bonus``: the published program drops the token that the model gives behind an accepted
    draft of *Reuse*, and computes it again; the paper does not say so. Replay honours it.
    """

    name = "efficientedit"

    def __init__(
        self,
        draft_model: Drafter | None = None,
        *,
        gamma: int = GAMMA,
        reuse: bool = True,
        drop_bonus: bool = False,
    ) -> None:
        self._draft_model = draft_model
        self._gamma = gamma
        self._reuse = reuse
        self.drop_bonus = drop_bonus
        self.begin(DraftRequest(np.empty(0, np.int32)))

    @property
    def drops_bonus_now(self) -> bool:
        """Whether the model's own token of the forward under way is to be thrown away."""
        return self.drop_bonus and self._reusing

    def begin(self, request: DraftRequest) -> None:
        """Start in *Reuse* with the whole original."""
        original = request.original if request.original is not None else np.empty(0, np.int32)
        self._remaining = np.asarray(original, np.int32)
        self._reusing = self._reuse and len(self._remaining) > 0
        self._output = np.empty(0, np.int32)
        if self._draft_model is not None:
            self._draft_model.begin(request)

    def draft(self, max_nodes: int) -> DraftTree:
        """One chain: the remaining original, or tokens of the draft model, or nothing."""
        if self._reusing:
            return DraftTree.chain(self._remaining[:max_nodes], Source.ORIGINAL)
        if self._draft_model is not None:
            return self._draft_model.draft(min(max_nodes, self._gamma))
        return DraftTree.empty()

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """Cut what was reused off the remaining original; change the phase where it is due."""
        self._output = np.concatenate([self._output, np.asarray(tokens, np.int32)])
        if self._draft_model is not None:
            self._draft_model.commit(tree, path, tokens)
        if self._reusing:
            self._remaining = self._remaining[len(path) :]
            bonus_follows = len(tokens) > len(path) and len(path) == len(tree)
            if bonus_follows and len(self._remaining) and self._remaining[0] == tokens[-1]:
                # The draft was cut at the limit of nodes, so nothing of it was rejected.
                self._remaining = self._remaining[1:]
            else:
                cut_at_limit = len(path) == len(tree) == len(tokens) and len(self._remaining) > 0
                self._reusing = cut_at_limit
        if not self._reusing and self._reuse:
            self._return_to_reuse()

    def _return_to_reuse(self) -> None:
        """Prefix matching: find the output's last tokens, at their first place, in what remains."""
        gamma = self._gamma
        if len(self._output) < gamma or len(self._remaining) < gamma:
            return
        windows = np.lib.stride_tricks.sliding_window_view(self._remaining, gamma)
        places = np.flatnonzero((windows == self._output[-gamma:]).all(axis=1))
        if len(places):
            self._remaining = self._remaining[int(places[0]) + gamma :]
            self._reusing = len(self._remaining) > 0
