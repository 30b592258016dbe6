"""Which model suits this machine: the largest that fits and is quick enough for typing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from accel.models.room import has_room
from lsp_server.models.catalogue import KnownModel
from lsp_server.models.manifest import OfferedModel
from lsp_server.models.speed import Speed, estimated_speed

SLOWEST_FIRST_TEXT_S = 3.0
"""From a prompt of ``speed.PROMPT_TOKENS`` computed cold; typing goes on from a warm one."""
FEWEST_TOKENS_PER_S = 12.0
OPEN_LICENCES = frozenset({"apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "mpl-2.0", "isc"})
"""A model with one of these comes before one whose licence forbids some uses or is not known."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """name and path: of a model on this machine; the path of one that must be fetched first is
    empty, and so are both where nothing suits; reason: a sentence for the user."""

    name: str
    path: str
    reason: str
    fetch: bool = False


NOTHING_SUITS = Recommendation("", "", "no model that is known here suits this machine")


def recommended(
    models: Iterable[KnownModel], offered: Iterable[OfferedModel] = ()
) -> Recommendation:
    """The model to take here. One that has to be fetched is recommended where none that is here
    suits."""
    here = [model for model in models if _suits(model)]
    if here:
        best = max(here, key=lambda model: _worth(model.about.licence, model.about.parameters))
        return Recommendation(best.name, str(best.paths[0]), _reason(best.speed))
    there = [model for model in offered if _offer_suits(model)]
    if there:
        choice = max(there, key=lambda model: _worth(model.licence, model.parameters))
        reason = _reason(estimated_speed(choice.nbytes))
        return Recommendation(choice.name, "", reason, fetch=True)
    return NOTHING_SUITS


def _suits(model: KnownModel) -> bool:
    about = model.about
    quick = model.speed is not None and _quick(model.speed)
    return quick and _completes(about.does) and has_room(about.nbytes, about.kv_bytes)


def _offer_suits(model: OfferedModel) -> bool:
    quick = _quick(estimated_speed(model.nbytes))
    return _completes(model.does) and quick and has_room(model.nbytes, model.kv_bytes)


def _completes(does: tuple[str, ...]) -> bool:
    """Models of next edits have the tokens to fill in the middle, and have forgotten how."""
    return "fim" in does and "next-edit" not in does


def _quick(speed: Speed) -> bool:
    first = speed.first_text_s <= SLOWEST_FIRST_TEXT_S
    return first and speed.tokens_per_s >= FEWEST_TOKENS_PER_S


def _worth(licence: str, parameters: int) -> tuple[bool, int]:
    return licence.lower() in OPEN_LICENCES, parameters


def _reason(speed: Speed | None) -> str:
    assert speed is not None, "a model that suits has a speed"
    about = "" if speed.measured else "about "
    return (
        "it is the largest here that fills in the middle, fits into memory and is quick enough: "
        f"{about}{speed.tokens_per_s:.0f} tokens a second"
    )
