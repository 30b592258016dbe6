"""Ready-made instructions, offered as code actions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preset:
    """An instruction with a title; ``languages`` empty for all."""

    title: str
    instruction: str
    languages: tuple[str, ...] = ()


PRESETS: tuple[Preset, ...] = (
    Preset("add a docstring", "add a docstring", ("python",)),
    Preset("add type hints", "add type hints", ("python",)),
    Preset("simplify", "simplify the code without changing what it does"),
    Preset("remove comments", "remove comments", ("python",)),
    Preset("remove the docstring", "remove the docstring", ("python",)),
    Preset("remove type hints", "remove type hints", ("python",)),
    Preset("use f-strings", "use f-strings", ("python",)),
    Preset("use double quotes", "use double quotes", ("python",)),
)
LONGEST_TITLE = 60


def presets_for(language: str, own: Sequence[str], done: Collection[str] = ()) -> list[Preset]:
    """What to offer in a language: the user's ``own`` instructions, then those of ours that are
    ``done`` by the model, all where nothing is said of it."""
    mine = [Preset(text.strip()[:LONGEST_TITLE], text.strip()) for text in own if text.strip()]
    ours = (one for one in PRESETS if not one.languages or language in one.languages)
    return [*mine, *(one for one in ours if not done or one.instruction in done)]
