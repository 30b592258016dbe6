"""Ready-made instructions, offered as code actions."""

from __future__ import annotations

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
)
