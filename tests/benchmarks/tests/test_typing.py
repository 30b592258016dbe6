"""``typing``: what a person waits for, with a small model."""

from __future__ import annotations

import random
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from text_cases import data_cases

from lsp_server.commands.bench.options import source_text
from tests.benchmarks.keystrokes.programs import (
    ShownGhost,
    TypedPrograms,
    program_figures,
    prose_of,
    type_file,
)
from tests.benchmarks.keystrokes.typist import (
    TimedRequest,
    TypingTally,
    matches,
    typing_figures,
    typing_places,
)

CODE = "".join(
    f"def f{n}(a, b):\n    c = a + {n}\n    d = b * c\n    return c - d\n\n\n" for n in range(40)
)


def test_a_text_of_our_own_is_measured_on() -> None:
    assert typing_places(source_text(None), 4)


def test_a_person_types_the_bodies_of_functions() -> None:
    places = typing_places(CODE, 4)
    assert len(places) == 4
    for place in places:
        assert place.before + place.typed + place.after == CODE
        assert place.typed.startswith("    ")


def test_typing_counts_what_needed_no_model_and_was_right() -> None:
    tally = TypingTally(requests=3, along=2)
    tally.typed = [TimedRequest(1, 2.0, "ab", "ab", True), TimedRequest(2, 4.0, "x", "ab", True)]
    tally.waited = [TimedRequest(3, 30.0, "text", "", False)]
    moments = {"p95": 0.001, "p999": 0.002, "max": 0.003}
    answers = [{"id": n, "seconds": 0.001, "withoutModel": n < 3} for n in (1, 2, 3)]
    measured = {"answers": answers, "loopLate": moments, "loopBusy": moments, "didChange": moments}
    figures = typing_figures(tally, measured)
    assert figures["answered_without_model"] == 0.5
    assert (figures["without_model"], figures["fresh_ms_p50"]) == (2, 30.0)
    assert figures["did_change_ms_p95"] == 1.0


@pytest.mark.parametrize(
    ("text", "typed", "expected"),
    [("a b", "a", True), ("  a", "  ab", True), ("  b", "  ab", False), ("", "a", False)],
)
def test_a_suggestion_matches_by_the_next_character_that_shows(
    text: str, typed: str, expected: bool
) -> None:
    assert matches(text, typed) is expected


@data_cases()
def test_what_is_shown_is_judged_by_what_is_typed(text: str, seen_s: float, verdict: str) -> None:
    shown = ShownGhost("python", False, text, "total = 1\nprint", 20.0, seen_s, False)
    assert shown.verdict == verdict
    typed = TypedPrograms([shown], {False: 30.0, True: 0.0})
    assert program_figures(typed)[f"code: {verdict} a minute"] == 2.0


def test_comments_and_documents_count_apart() -> None:
    text = "x = 1  # why\ny = '# no'\n"
    is_prose = prose_of(text, "python", "a.py")
    assert "".join(c for c, told in zip(text, is_prose, strict=True) if told) == "# why"
    assert all(prose_of("Fix it\n", "git-commit", "COMMIT_EDITMSG"))
    document = prose_of("a\n```js\nb()\n```\nc\n", "markdown", "a.md")
    assert [number for number, told in enumerate(document) if not told] == [8, 9, 10, 11]


class LateAnswer(Future[Any]):
    """An answer that comes to nobody who waits less than two seconds."""

    def result(self, timeout: float | None = None) -> Any:
        """Return a completion, or raise NotInTime."""
        if timeout is not None and timeout < 2:
            raise NotInTime
        return {"items": [{"insertText": "b"}]}


@pytest.mark.parametrize(("is_patient", "shown"), [(True, ["b"]), (False, [])])
def test_with_patience_late_answers_count_as_come_at_once(
    tmp_path: Path, is_patient: bool, shown: list[str]
) -> None:
    editor = SimpleNamespace(notify=lambda *_: None, start=lambda *_: (1, LateAnswer()))
    client = cast(Any, SimpleNamespace(client=editor))
    file = tmp_path / "a.py"
    file.write_text("a", encoding="utf-8")
    typed = type_file(client, tmp_path, file, 1, random.Random(0), is_patient=is_patient)
    assert [each.text for each in typed.shown] == shown
    assert 0 < typed.seconds[False] < 2
