"""Recommends a model for this machine: the largest that fits and is quick enough for typing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lsp_server.models.card import ModelCard, Speed
from lsp_server.models.manifest import DEFAULT, DEFAULT_FILE

SLOWEST_FIRST_TEXT_S = 3.0
"""From a prompt of ``speed.PROMPT_TOKENS`` computed cold; typing goes on from a warm one."""
FEWEST_TOKENS_PER_S = 12.0
SLOWEST_FIRST_TEXT_OF_EDITS_S = 20.0
FEWEST_TOKENS_OF_EDITS_PER_S = 6.0
"""Most of an edit is copied from the code, which takes a fraction of the forwards."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """name and path: of a model on this machine; the path of one that must be fetched first is
    empty, and so are both where nothing suits; reason: a sentence for the user."""

    name: str
    path: str
    reason: str
    fetch: bool = False


NOTHING_SUITS = Recommendation("", "", "no model that is known here suits this machine")


def recommended(models: Iterable[ModelCard], offered: Iterable[ModelCard] = ()) -> Recommendation:
    """Return the model to take here. One that has to be fetched is recommended where none that is
    here suits; the default one where that does not help either, slow as it may be."""
    best = _for_completions([*models], [*offered])
    return NOTHING_SUITS if best is None else _recommendation(best, "fills in the middle")


def recommended_for_edits(
    models: Iterable[ModelCard], offered: Iterable[ModelCard] = ()
) -> Recommendation | None:
    """Return a model that makes edits beside the one that is recommended for completions, where
    both fit into memory; None where that one edits as well as any that would fit."""
    here, there = [*models], [*offered]
    best = _for_completions(here, there)
    if best is None:
        return None
    least = best.parameters if "edit" not in best.does else best.parameters + 1

    def suits(choice: ModelCard) -> bool:
        edits = "edit" in choice.does and not _is_default(choice)
        quick = _is_quick(choice, SLOWEST_FIRST_TEXT_OF_EDITS_S, FEWEST_TOKENS_OF_EDITS_PER_S)
        larger = choice.parameters >= least and choice.name != best.name
        return edits and quick and larger and choice.fits(beside=best.nbytes)

    editor = _best(here, suits) or _best(there, suits)
    return None if editor is None else _recommendation(editor, "edits")


def _for_completions(here: list[ModelCard], there: list[ModelCard]) -> ModelCard | None:
    chosen = [choice for choice in here if not _is_default(choice)]
    return (
        _best(chosen, _suits)
        or _best([choice for choice in there if not _is_default(choice)], _suits)
        or _best([*here, *there], _suits_as_default)
    )


def _best(choices: list[ModelCard], suits: Callable[[ModelCard], bool]) -> ModelCard | None:
    return max(
        filter(suits, choices),
        key=lambda choice: (choice.has_open_licence, choice.parameters),
        default=None,
    )


def _suits_as_default(choice: ModelCard) -> bool:
    return _is_default(choice) and choice.speed is not None and choice.fits()


def _is_default(choice: ModelCard) -> bool:
    return choice.paths[0].name == DEFAULT_FILE if choice.paths else choice.name == DEFAULT


def _suits(choice: ModelCard) -> bool:
    quick = _is_quick(choice, SLOWEST_FIRST_TEXT_S, FEWEST_TOKENS_PER_S)
    return quick and "fim" in choice.does and choice.fits()


def _is_quick(choice: ModelCard, slowest_first_text_s: float, fewest_tokens_per_s: float) -> bool:
    speed = choice.speed or Speed(float("inf"), 0.0, measured=False)
    return speed.first_text_s <= slowest_first_text_s and speed.tokens_per_s >= fewest_tokens_per_s


def _recommendation(choice: ModelCard, does: str) -> Recommendation:
    assert choice.speed is not None, "a model that suits has a speed"
    reason = f"it is the largest here that {does}, fits into memory and is quick enough"
    if _is_default(choice):
        reason = "nothing larger is quick enough here, and it is small"
    approximately = "" if choice.speed.measured else "about "
    reason += f": {approximately}{choice.speed.tokens_per_s:.0f} tokens a second"
    return Recommendation(choice.name, choice.path, reason, fetch=not choice.path)
