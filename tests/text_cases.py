"""Tables of cases that are data: texts as they stand, in files of tests/data."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

TESTS = Path(__file__).parent
FOLDER = TESTS / "data"
Test = TypeVar("Test", bound=Callable[..., Any])


@cache
def data_beside(test_file: str) -> dict[str, Any]:
    """Return the data of a file of tests: of ``tests/FOLDER/test_NAME.py``, what stands in
    ``tests/data/cases/FOLDER/NAME.yaml``."""
    path = Path(test_file).resolve().relative_to(TESTS.resolve())
    data = FOLDER / "cases" / path.parent / f"{path.stem.removeprefix('test_')}.yaml"
    return dict(yaml.safe_load(data.read_text("utf-8")))


def data_cases(argument: str = "") -> Callable[[Test], Test]:
    """Parametrise a test by the cases of its name in its file's data.

    A case is a value of ``argument``; where ``argument`` is empty, a mapping of arguments by name,
    in which ``id`` names the case.
    """

    def parametrised(test: Test) -> Test:
        cases = data_beside(inspect.getfile(test))[test.__name__]
        if argument:
            return pytest.mark.parametrize(argument, cases)(test)
        names = [name for name in cases[0] if name != "id"]
        rows = [pytest.param(*(case[name] for name in names), id=case.get("id")) for case in cases]
        return pytest.mark.parametrize(names, rows)(test)

    return parametrised


def lines_of(name: str) -> list[str]:
    """Each line of a file of cases is one."""
    return (FOLDER / name).read_text("utf-8").splitlines()


def cases_of(name: str) -> dict[str, dict[str, str]]:
    """Cases by name: ``%%% name``, then fields, as ``%% field: text`` or as ``%% field`` and lines.

    A case without ``old`` has that of the case before it.
    """
    cases: dict[str, dict[str, str]] = {}
    case: dict[str, str] = {}
    for text in (FOLDER / name).read_text("utf-8").removeprefix("%%% ").split("\n%%% "):
        title, *fields = text.removesuffix("\n").split("\n%% ")
        case = {"old": case["old"]} if "old" in case else {}
        for field in fields:
            head, _, lines = field.partition("\n")
            key, colon, value = head.partition(": ")
            case[key] = value if colon else f"{lines}\n"
        cases[title] = case
    return cases
