"""Tables of cases that are data: texts as they stand, in files of tests/data."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "data"


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
