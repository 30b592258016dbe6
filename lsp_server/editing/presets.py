"""Ready-made instructions, offered as code actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preset:
    """An instruction with a title; ``languages`` empty for all.

    ``embedded`` and ``larger``: whether the embedded model learnt this edit, and whether it is
    worth a place in the menu where a larger one runs.
    """

    title: str
    instruction: str
    languages: tuple[str, ...] = ()
    embedded: bool = True
    larger: bool = True


PRESETS: tuple[Preset, ...] = (
    Preset("add a docstring", "add a docstring", ("python",)),
    Preset("add type hints", "add type hints", ("python",), embedded=False),
    Preset("simplify", "simplify the code without changing what it does", embedded=False),
    Preset("remove comments", "remove comments", ("python",), larger=False),
    Preset("remove the docstring", "remove the docstring", ("python",), larger=False),
    Preset("remove type hints", "remove type hints", ("python",), larger=False),
    Preset("use f-strings", "use f-strings", ("python",), larger=False),
    Preset("use double quotes", "use double quotes", ("python",), larger=False),
)
LONGEST_TITLE = 60


def presets_for(language: str, embedded: bool, own: Sequence[str]) -> list[Preset]:
    """What to offer in a language: the user's ``own`` instructions, then those that suit the
    model, the small ``embedded`` one or another."""
    mine = [Preset(text.strip()[:LONGEST_TITLE], text.strip()) for text in own if text.strip()]
    ours = [
        preset
        for preset in PRESETS
        if (preset.embedded if embedded else preset.larger)
        and (not preset.languages or language in preset.languages)
    ]
    return [*mine, *ours]
