"""Programs in many languages with a name to rename, whose renamed text is known by construction.

In the templates ``>`` at the start of a line is a step of indentation, ``«n»`` the name as an
identifier, ``«c»`` in a comment, ``«s»`` in a string, ``«p»`` the beginning of a longer name, and
``«f»`` the number of the function.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from text_cases import cases_of

TEMPLATES = {
    language: f"\n{case['text']}" for language, case in cases_of("rename_programs.txt").items()
}
HEADS = {"go": "package work\n\n", "php": "<?php\n"}
INDENTATIONS: dict[str, tuple[str, ...]] = {
    "two spaces": ("  ",),
    "four spaces": ("    ",),
    "tabs": ("\t",),
    "mixed": ("  ", "\t"),
}
"""The steps of indentation, in turn from the left."""

OLD_NAMES = ["prices", "a", "data", "_hidden", "Values", "x1", "very_long_name_of_it", "números"]
NEW_NAMES = ["items", "b", "rows", "_kept", "Amounts", "y2", "another_long_name_of_it", "größe"]
WORDINGS = [
    ("rename {old} to {new}", False, False),
    ("Please rename the parameter `{old}` to `{new}`.", False, False),
    ("change the name of {old} to {new}", False, False),
    ("rename {old} -> {new}", False, False),
    ("{old} should be called {new}", False, False),
    ("rename {old} to {new}, also in comments", True, False),
    ("rename {old} to {new} in strings too", False, True),
    ("rename {old} to {new} in comments and strings", True, True),
    ("rename {old} to {new} everywhere", True, True),
]


@dataclass(frozen=True, slots=True)
class RenameProgram:
    """A text and what a rename of it must give."""

    text: str
    instruction: str
    wanted: str


def rename_program(language: str, indentation: str, rng: random.Random) -> RenameProgram:
    """A program of one to three functions, with line ends, wording and names by chance."""
    # A capital makes a constant in Ruby.
    fitting = [name for name in OLD_NAMES if language != "ruby" or name[0].islower()]
    old = rng.choice(fitting)
    new = rng.choice([name for name in NEW_NAMES if language != "ruby" or name[0].islower()])
    wording, comments, strings = rng.choice(WORDINGS)
    body = "".join(
        TEMPLATES[language].replace("«f»", str(number)) for number in range(rng.randrange(1, 4))
    )
    body = HEADS.get(language, "") + _indented(body, INDENTATIONS[indentation]).lstrip("\n")
    body = body.replace("\n", rng.choice(["\n", "\n", "\r\n"]))
    if rng.random() < 0.2:
        body = body.rstrip("\r\n")

    def filled(code: str, comment: str, string: str) -> str:
        marks = {"«n»": code, "«c»": comment, "«s»": string, "«p»": old}
        text = body
        for mark, name in marks.items():
            text = text.replace(mark, name)
        return text

    return RenameProgram(
        filled(old, old, old),
        wording.format(old=old, new=new),
        filled(new, new if comments else old, new if strings else old),
    )


def _indented(body: str, steps: tuple[str, ...]) -> str:
    lines = []
    for line in body.split("\n"):
        depth = len(line) - len(line.lstrip(">"))
        lines.append("".join(steps[at % len(steps)] for at in range(depth)) + line[depth:])
    return "\n".join(lines)
