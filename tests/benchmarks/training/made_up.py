"""Edits and next edits that are made up from Python files, beside those of commits."""

from __future__ import annotations

import random

from tests.benchmarks.training.function_source import function_places
from tests.benchmarks.training.made_edits import draw_edit
from tests.benchmarks.training.made_histories import made_history
from tests.benchmarks.training.samples.code import CodeFile, lines_of
from tests.benchmarks.training.samples.commit_edits import AROUND, InstructedEdit
from tests.benchmarks.training.samples.sample_maker import MadeUp


def made_edit(file: CodeFile, rng: random.Random) -> InstructedEdit | None:
    """An edit of one of the functions of a file."""
    places = list(function_places(file.text))
    if not places:
        return None
    place = rng.choice(places)
    made = draw_edit(file.text[place.start : place.end], rng)
    if made is None:
        return None
    shown = rng.choice(AROUND)
    lines = lines_of(file.text)
    return InstructedEdit(
        made.instruction,
        made.before,
        made.after,
        "".join(lines[max(0, place.first_line - shown) : place.first_line]),
        "".join(lines[place.end_line : place.end_line + shown]),
        file.language,
        file.path,
    )


MADE_UP = MadeUp(made_edit, made_history)
