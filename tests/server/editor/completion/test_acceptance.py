"""What becomes of suggestions: what counts as taken, what is learnt of it, and where it stays."""

from __future__ import annotations

import json
import os
import random
import stat
from pathlib import Path
from typing import Any

import pytest

from lsp_server.editor.completion import offers as offers_module
from lsp_server.editor.completion.acceptance_rates import (
    FEWEST,
    HARDLY_EVER,
    SAVE_EVERY,
    TRY_AGAIN_EVERY,
    AcceptanceRates,
)
from lsp_server.editor.completion.offers import Offers
from lsp_server.editor.completion.request import CompletionRequest


def ask(prefix: str, document: str = "d", language: str = "python") -> CompletionRequest:
    return CompletionRequest(document, "d.py", "/w", language, prefix, "\n")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(offers_module.time, "monotonic", lambda: now[0])
    return now


class Noted(AcceptanceRates):
    """Rates that note what they are told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, bool, bool]] = []

    def learn(self, language: str, several: bool, taken: bool) -> None:
        self.told.append((language, several, taken))
        super().learn(language, several, taken)


def test_a_suggestion_typed_into_is_one_offer_under_one_id(clock: list[float]) -> None:
    rates = Noted()
    offers = Offers(rates)
    text = "path.join(a)"
    ids = {offers.show(ask("os." + text[:typed]), [text[typed:]]) for typed in range(len(text))}
    assert len(ids) == 1
    assert rates.told == []
    offers.show(ask("os." + text), ["\nx = 1"])
    assert rates.told == [("python", False, True)], "typed to its end, it was right"


def test_what_was_seen_and_not_typed_was_turned_down(clock: list[float]) -> None:
    rates = Noted()
    offers = Offers(rates)
    offers.show(ask("a = "), ["b\nc"])
    clock[0] += 0.1
    offers.show(ask("a = x"), ["yz"])
    assert rates.told == [], "nobody reads so quickly"
    clock[0] += 1.0
    offers.show(ask("a = xn"), [])
    assert rates.told == [("python", False, False)]


def test_an_accepted_item_is_counted_once_and_gives_its_text(clock: list[float]) -> None:
    rates = Noted()
    offers = Offers(rates)
    number = offers.show(ask("a = "), ["one(two)", "three"])
    assert offers.show(ask("a = on"), ["e(two)"]) == number
    taken = offers.accepted({"id": number, "length": len("e(two)")})
    assert taken is not None
    assert (taken[0].prefix, taken[1]) == ("a = ", "one(two)")
    assert offers.accepted({"id": number, "length": 6}) is None
    assert rates.told == [("python", False, True)]


def test_a_part_and_an_alternative_may_be_accepted(clock: list[float]) -> None:
    offers = Offers(AcceptanceRates())
    number = offers.show(ask("a = "), ["one(two)", "three"])
    taken = offers.accepted({"id": number, "number": 0, "length": 3})
    assert taken is not None
    assert taken[1] == "one"
    other = offers.show(ask("b = ", document="e"), ["one(two)", "three"])
    taken = offers.accepted({"id": other, "number": 1, "length": 5})
    assert taken is not None
    assert taken[1] == "three"


@pytest.mark.parametrize(
    "told", [{}, {"id": "x"}, {"id": 99}, {"id": None, "length": []}, {"id": 1, "number": 7}]
)
def test_what_no_editor_should_say_is_ignored(told: dict[str, Any], clock: list[float]) -> None:
    offers = Offers(AcceptanceRates())
    offers.show(ask("a"), ["b"])
    assert offers.accepted(told) is None


def test_languages_in_which_several_lines_are_never_taken_get_single_ones() -> None:
    rates = AcceptanceRates()
    assert rates.wants_several("lua")
    for _ in range(FEWEST + 40):
        rates.learn("lua", True, False)
    assert rates.by_language()["lua"]["rate"] < HARDLY_EVER
    wanted = [rates.wants_several("lua") for _ in range(3 * TRY_AGAIN_EVERY)]
    assert wanted.count(True) == 3
    assert rates.wants_several("python"), "other languages are not touched"
    for _ in range(5):
        rates.learn("lua", True, True)
    assert rates.wants_several("lua"), "tastes change"


def test_the_rate_is_that_of_the_last_outcomes() -> None:
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    rates = AcceptanceRates()
    for _ in range(2000):
        rates.learn("go", False, rng.random() < 0.4)
    assert rates.by_language()["go"]["rate"] == pytest.approx(0.4, abs=0.25), seed


def test_rates_are_kept_for_the_user_alone_and_a_damaged_file_is_begun_anew(tmp_path: Path) -> None:
    file = tmp_path / "state" / "acceptance.json"
    rates = AcceptanceRates(file)
    for _ in range(SAVE_EVERY):
        rates.learn("python", True, True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert AcceptanceRates(file).by_language() == rates.by_language()
    for damaged in ("", "[]x", '[{"language": 1}]', "null", json.dumps([{"rate": "x"}])):
        file.write_text(damaged)
        assert AcceptanceRates(file).by_language() == {}


def test_a_place_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    rates = AcceptanceRates(blocked / "acceptance.json")
    for _ in range(SAVE_EVERY):
        rates.learn("python", True, True)
    assert rates.by_language()["python"]["shown"] == SAVE_EVERY
    assert os.listdir(tmp_path) == ["file"]
