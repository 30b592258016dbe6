"""Recommends a model for this machine: the largest that fits and is quick enough for typing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from accel.models.room import has_room
from lsp_server.models.catalogue import KnownModel
from lsp_server.models.manifest import DEFAULT, DEFAULT_FILE, OPEN_LICENCES, OfferedModel
from lsp_server.models.speed import Speed, estimated_speed

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


@dataclass(frozen=True, slots=True)
class _Choice:
    """A model that is here, or one that can be fetched (with an empty path)."""

    name: str
    path: str
    licence: str
    parameters: int
    nbytes: int
    kv_bytes: int
    does: tuple[str, ...]
    speed: Speed | None
    is_default: bool

    @property
    def worth(self) -> tuple[bool, int]:
        return self.licence.lower() in OPEN_LICENCES, self.parameters

    def fits_beside(self, nbytes: int) -> bool:
        """Whether memory has room for it and for so many bytes of another model."""
        return has_room(self.nbytes + nbytes, self.kv_bytes)


def recommended(
    models: Iterable[KnownModel], offered: Iterable[OfferedModel] = ()
) -> Recommendation:
    """The model to take here. One that has to be fetched is recommended where none that is here
    suits; the default one where that does not help either, slow as it may be."""
    best = _for_completions(_here(models), _there(offered))
    return NOTHING_SUITS if best is None else _recommendation(best, "fills in the middle")


def recommended_for_edits(
    models: Iterable[KnownModel], offered: Iterable[OfferedModel] = ()
) -> Recommendation | None:
    """A model that makes edits beside the one that is recommended for completions, where both fit
    into memory; None where that one edits as well as any that would fit."""
    here, there = _here(models), _there(offered)
    best = _for_completions(here, there)
    if best is None:
        return None
    least = best.parameters if "edit" not in best.does else best.parameters + 1

    def suits(choice: _Choice) -> bool:
        edits = "edit" in choice.does and not choice.is_default
        speed = choice.speed or Speed(float("inf"), 0.0, measured=False)
        quick = speed.first_text_s <= SLOWEST_FIRST_TEXT_OF_EDITS_S
        quick &= speed.tokens_per_s >= FEWEST_TOKENS_OF_EDITS_PER_S
        larger = choice.parameters >= least and choice.name != best.name
        return edits and quick and larger and choice.fits_beside(best.nbytes)

    found = _best(here, suits) or _best(there, suits)
    return None if found is None else _recommendation(found, "edits")


def _here(models: Iterable[KnownModel]) -> list[_Choice]:
    found = []
    for model in models:
        about = model.about
        sizes = about.licence, about.parameters, about.nbytes, about.kv_bytes
        is_default = model.paths[0].name == DEFAULT_FILE
        path = str(model.paths[0])
        found.append(_Choice(model.name, path, *sizes, about.does, model.speed, is_default))
    return found


def _there(offered: Iterable[OfferedModel]) -> list[_Choice]:
    found = []
    for model in offered:
        sizes = model.licence, model.parameters, model.nbytes, model.kv_bytes
        speed = estimated_speed(model.nbytes) if model.nbytes else None
        is_default = model.name == DEFAULT
        found.append(_Choice(model.name, "", *sizes, model.does, speed, is_default))
    return found


def _for_completions(here: list[_Choice], there: list[_Choice]) -> _Choice | None:
    chosen = [choice for choice in here if not choice.is_default]
    return (
        _best(chosen, _suits)
        or _best([choice for choice in there if not choice.is_default], _suits)
        or _best([*here, *there], lambda choice: choice.is_default and choice.fits_beside(0))
    )


def _best(choices: list[_Choice], suits: Callable[[_Choice], bool]) -> _Choice | None:
    return max(filter(suits, choices), key=lambda choice: choice.worth, default=None)


def _suits(choice: _Choice) -> bool:
    quick = choice.speed is not None and _quick(choice.speed)
    return quick and _completes(choice.does) and choice.fits_beside(0)


def _recommendation(choice: _Choice, does: str) -> Recommendation:
    assert choice.speed is not None, "a model that suits has a speed"
    if choice.is_default:
        about = "" if choice.speed.measured else "about "
        speed = f"{about}{choice.speed.tokens_per_s:.0f} tokens a second"
        reason = f"nothing larger is quick enough here, and it is small: {speed}"
    else:
        reason = _reason(choice.speed, does)
    return Recommendation(choice.name, choice.path, reason, fetch=not choice.path)


def _completes(does: tuple[str, ...]) -> bool:
    """Models of next edits have the tokens to fill in the middle, and have forgotten how."""
    return "fim" in does and "next-edit" not in does


def _quick(speed: Speed) -> bool:
    first = speed.first_text_s <= SLOWEST_FIRST_TEXT_S
    return first and speed.tokens_per_s >= FEWEST_TOKENS_PER_S


def _reason(speed: Speed, does: str) -> str:
    about = "" if speed.measured else "about "
    return (
        f"it is the largest here that {does}, fits into memory and is quick enough: "
        f"{about}{speed.tokens_per_s:.0f} tokens a second"
    )
