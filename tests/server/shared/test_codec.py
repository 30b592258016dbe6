"""The codec of the contract: what comes back, what is refused, what is left out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from text_cases import data_cases

from accel.files.model_options import option
from lsp_server.shared.contract.codec import Unreadable, read, to_json


@dataclass(frozen=True, slots=True)
class Inner:
    path: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Outer:
    name: str
    count: int = option(1, "How many.", low=0, high=9)
    share: float = 0.5
    kind: str = option("a", "Which.", choices=("a", "b"))
    limit: int | None = None
    inner: Inner | None = None
    inners: list[Inner] = field(default_factory=list)
    pairs: tuple[tuple[str, float | None], ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    long_name: bool = False
    places: tuple[Path, ...] = ()


FULL = Outer(
    "x \ud800",
    3,
    1.0,
    "b",
    7,
    Inner("p"),
    [Inner("q", "t")],
    (("a", None), ("b", 2.0)),
    {"n": 1},
    True,
    (Path("a/b"), Path("/c \udcff")),
)


@pytest.mark.parametrize("value", [FULL, Outer("y")])
def test_a_value_comes_back_as_it_was(value: Outer) -> None:
    assert read(Outer, json.loads(json.dumps(to_json(value)))) == value


def test_what_is_none_by_default_is_not_written() -> None:
    assert {"limit", "inner"}.isdisjoint(to_json(Outer("y")))
    assert to_json([Inner("p")]) == [{"path": "p", "text": ""}]


def test_a_null_is_a_default_and_names_may_be_in_camel_case() -> None:
    assert read(Outer, {"name": "y", "count": None, "longName": True}) == Outer("y", long_name=True)


@data_cases()
def test_what_does_not_fit_is_refused_by_its_place(values: Any, problem: str) -> None:
    with pytest.raises(Unreadable) as raised:
        read(Outer, values, "job")
    assert problem in str(raised.value)


def test_an_answer_may_tell_more_than_is_known() -> None:
    told = {"name": "y", "new": {"any": 1}, "inner": {"path": "p", "new": []}}
    assert read(Outer, told, unknown="ignored") == Outer("y", inner=Inner("p"))
    with pytest.raises(Unreadable):
        read(Outer, {**told, "count": "many"}, unknown="ignored")
