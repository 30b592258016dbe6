"""The smallest model that would make an edit by instruction that the current one did not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from lsp_server.models.fetched import models_folder
from lsp_server.models.manifest import OfferedModel, read_manifest
from lsp_server.models.recommendation import FEWEST_TOKENS_OF_EDITS_PER_S

GOOD_PERCENT = 50.0
"""Of a published test of edits: a model that does half of it is good enough to be recommended for
being small."""


@dataclass(frozen=True, slots=True)
class BetterEditor:
    """A model with a published figure for edits, which suits this machine. is_here: it was fetched
    already."""

    model: OfferedModel
    is_here: bool

    @property
    def reason(self) -> str:
        """A sentence with the model's published figure, its size and its speed here."""
        figure, speed = self.model.edit_figure, self.model.speed
        assert figure is not None
        assert speed is not None
        return (
            f"{self.model.name} does more of such edits: {figure.percent:g} % of {figure.test}, as "
            f"published ({self.model.fetched_bytes / 1e9:.1f} GB, about "
            f"{speed.tokens_per_s:.0f} tokens/s here)"
        )

    @property
    def advice(self) -> str:
        """The reason, and the command."""
        verb, does = ("use", "chooses") if self.is_here else ("get", "fetches and chooses")
        return f"{self.reason}; `redraft models {verb} {self.model.name} --for edits` {does} it"


def better_editor(current: str) -> BetterEditor | None:
    """Return the model that is recommended where the one in a file called ``current`` failed; None
    where nothing is known of that one, or no better one suits this machine."""
    # NumPy measures speeds: the daemon holds none of it until it is asked.
    from lsp_server.models.speed import rated

    offered = {model.file: model for model in read_manifest()}
    now = offered.get(PurePath(current).name)
    if now is None:
        return None
    better = smallest_good([*map(rated, offered.values())], _percent(now))
    if better is None:
        return None
    return BetterEditor(better, (models_folder() / better.file).is_file())


def smallest_good(models: Sequence[OfferedModel], current: float) -> OfferedModel | None:
    """Return the smallest of those that edit well, fit into memory and are quick enough; where none
    does, the best that does better than ``current`` percent."""
    fitting = [
        model
        for model in models
        if _percent(model) > current
        and not model.limits_use
        and model.speed is not None
        and model.speed.tokens_per_s >= FEWEST_TOKENS_OF_EDITS_PER_S
        and model.fits()
    ]
    good = [model for model in fitting if _percent(model) >= GOOD_PERCENT]
    return min(
        good, key=lambda model: model.nbytes, default=max(fitting, key=_percent, default=None)
    )


def _percent(model: OfferedModel) -> float:
    return model.edit_figure.percent if model.edit_figure is not None else 0.0
