"""How much of a suggestion is shown: the rule against a slow one, typing along, statements."""

from __future__ import annotations

import asyncio
import itertools
import math
import random
import re
from collections.abc import Callable, Sequence

import pytest
from engine_stand_in import Request
from staged_engine import Session, settle, texts
from text_cases import data_cases

from lsp_server.editor.completion.acceptance_rates import AcceptanceRates
from lsp_server.editor.completion.automatic_trigger import IN_PROSE, NOTHING_MISSING
from lsp_server.editor.completion.offers import Offers
from lsp_server.editor.completion.request import CompletionRequest
from lsp_server.shared.contract.jobs import JobResult, Span
from lsp_server.tasks.completion import stopping
from lsp_server.tasks.completion.confidence_gate import (
    IMPOSSIBLE,
    LINES,
    THRESHOLDS,
    UNITS,
    BetaCalibration,
    GateWatch,
    LikelyPiece,
    aligned,
    gated,
    least_joint,
    pieces_of,
    rest_of,
    sure_length,
    unit_ends,
)

UNIT = 4


def slow_sure_length(pieces: Sequence[LikelyPiece], threshold: float) -> int:
    """The longest run by trying all of them."""
    lengths = [0]
    for count in range(1, len(pieces) + 1):
        run = pieces[:count]
        if math.prod(math.exp(piece.logprob) for piece in run) < threshold:
            break
        lengths.append(sum(piece.length for piece in run))
    return lengths[-1]


def slow_unit_ends(line: str) -> list[int]:
    """By looking at every beginning of the line as a whole."""
    ends = []
    for end in range(1, len(line)):
        text, behind = line[:end].strip(), line[end]
        bare = re.sub(r"\"[^\"]*\"", "s", text)
        is_torn = re.fullmatch(r"\w\w", line[end - 1 : end + 1]) is not None
        ends_well = re.search(r"[\w)\]}\"]$", line[:end]) is not None
        depth = sum(bare.count(one) for one in "([{") - sum(bare.count(one) for one in ")]}")
        dangles = re.split(r"\W", text)[-1] in ("if", "return", "in")
        is_closed = depth <= 0 and '"' not in bare and behind not in '.(["'
        if not is_torn and ends_well and is_closed and not dangles and len(text) >= UNIT:
            ends.append(end)
    return [] if line.count('"') % 2 else ends


def slow_gated(text: str, pieces: Sequence[LikelyPiece], threshold: float) -> str:
    """By asking every end one after another, whole lines first."""

    def passes(
        end: int, calibration: BetaCalibration, of_end: Callable[[LikelyPiece], float]
    ) -> bool:
        before = itertools.takewhile(
            lambda n: sum(piece.length for piece in pieces[:n]) < end, range(len(pieces))
        )
        count = len(list(before))
        behind = pieces[count] if count < len(pieces) else None
        is_border = sum(piece.length for piece in pieces[:count]) == end
        joint = sum(piece.logprob for piece in pieces[:count])
        if behind is None or not is_border:
            if calibration is LINES:
                return False
        else:
            joint += of_end(behind)
        nothing = next(piece.end for piece in pieces if piece.length)
        length = max(len(text[:end].strip()), 1)
        return joint >= nothing and calibration.chance(joint, length) >= threshold

    lines = [
        end for end in range(1, len(text) + 1)
        if text[:end].rsplit("\n", 1)[-1].strip() and (end == len(text) or text[end] == "\n")
    ]  # fmt: skip
    passing = list(itertools.takewhile(lambda end: passes(end, LINES, lambda p: p.end), lines))
    if not passing:
        ends = slow_unit_ends(text.split("\n", 1)[0])
        passing = [end for end in ends if passes(end, UNITS, lambda p: p.logprob)]
    return text[: max(passing, default=0)].rstrip()


PARTS = ("foo", "x_1", " ", " = ", "(", ")", ",", ":", "\n", "\n    ", ".", "if a:", "{", "é", "12",
         '"', "return", " in ")  # fmt: skip


def random_text(rng: random.Random) -> str:
    return "".join(rng.choice(PARTS) for _ in range(rng.randrange(1, 14)))


def test_the_rule_equals_a_slow_one() -> None:
    rng = random.Random(seed := random.randrange(1 << 30))
    lengths = set()
    for _ in range(3000):
        text = random_text(rng)
        if not text.strip():
            continue
        borders = sorted({0, len(text), *(rng.randrange(len(text) + 1) for _ in range(5))})
        pieces = [
            LikelyPiece(end - start, math.log(rng.uniform(0.5, 1)), math.log(rng.uniform(0.01, 1)))
            for start, end in itertools.pairwise(borders)
        ]
        if rng.random() < 0.7:
            pieces.append(LikelyPiece(0, math.log(rng.uniform(0.5, 1)), math.log(rng.random())))
        threshold = rng.choice([0.1, 0.4, 0.8])
        assert sure_length(pieces, threshold) == slow_sure_length(pieces, threshold), f"seed {seed}"
        line = text.split("\n")[0]
        assert unit_ends(line) == slow_unit_ends(line), (seed, line)
        shown = gated(text, pieces, threshold)
        assert shown == slow_gated(text, pieces, threshold), (seed, text, pieces, threshold)
        assert not shown or sure_length(pieces, least_joint(threshold)) >= len(shown), (
            f"seed {seed}"
        )
        lengths.add(len(shown))
    assert len(lengths) > 5


def pieces(*likely: tuple[str, float], end: float = 0.0) -> tuple[str, list[LikelyPiece]]:
    """A text and how likely its tokens are; ``end``: how likely it ends there, 0 where that is not
    known."""
    text = "".join(part for part, _ in likely)
    found = [LikelyPiece(len(part), math.log(chance), math.log(0.01)) for part, chance in likely]
    return text, [*found, *([LikelyPiece(0, 0.0, math.log(end))] if end else [])]


@data_cases()
def test_where_a_suggestion_ends(likely: list[tuple[str, float]], end: float, shown: str) -> None:
    assert gated(*pieces(*likely, end=end), 0.55) == shown


def lines(*likely: tuple[str, float, float]) -> tuple[str, list[LikelyPiece]]:
    text = "".join(part for part, _, _ in likely)
    return text, [LikelyPiece(len(part), math.log(p), math.log(end)) for part, p, end in likely]


def test_of_several_lines_each_has_to_pass() -> None:
    text, likely = lines(("if a:", 0.95, 0.01), ("\n    ", 1, 0.95), ("b()", 0.9, 0.01),
                         ("\n    ", 1, 0.9), ("c()", 0.2, 0.01), ("\n", 0.9, 0.9))  # fmt: skip
    assert gated(text, likely, 0.55) == "if a:\n    b()"
    assert gated(text, [likely[0]._replace(logprob=-2.0), *likely[1:]], 0.55) == ""


def test_nothing_is_shown_where_the_model_itself_would_rather_end() -> None:
    text, likely = pieces((" + x", 0.3), end=0.95)
    assert gated(text, likely, 0.1) == text
    assert gated(text, [likely[0]._replace(end=math.log(0.6)), *likely[1:]], 0.1) == ""


@pytest.mark.parametrize("threshold", [*sorted(THRESHOLDS.values())[1:], 0.1, 0.9])
def test_below_the_least_joint_probability_no_chance_is_high_enough(threshold: float) -> None:
    least = least_joint(threshold)
    for calibration, length in itertools.product((LINES, UNITS), (UNIT, 8, 30)):
        assert calibration.chance(math.log(least) - 0.01, length) < threshold
    at = [LINES.chance(math.log(least) + 0.01, 1), UNITS.chance(math.log(least) + 0.01, UNIT)]
    assert max(at) >= threshold


@pytest.mark.parametrize("calibration", [LINES, UNITS])
def test_what_is_likelier_has_the_higher_chance(calibration: BetaCalibration) -> None:
    chances = [calibration.chance(joint / 10, 8) for joint in range(-200, 1)]
    assert chances == sorted(chances)
    assert 0 < chances[0] < 0.01
    assert 0.9 < chances[-1] < 1


def test_a_line_end_in_a_token_is_a_piece_of_its_own() -> None:
    spans = [
        Span("\n  a", "model", -1.0, end_logprob=-2.0),
        Span(");\n  ", "model", -3.0, end_logprob=-4.0),
    ]
    assert pieces_of(spans) == [
        LikelyPiece(4, -1.0, -2.0), LikelyPiece(2, -3.0, -4.0), LikelyPiece(3, 0.0, 0.0)
    ]  # fmt: skip
    assert pieces_of([*spans, Span("b", "model", -1.0)]) is None


def test_without_probabilities_or_a_gate_all_is_shown() -> None:
    text, likely = pieces(("a", 0.01), ("b", 0.01))
    assert gated(text, [], 0.4) == "ab"
    assert gated(text, likely, 0.0) == "ab"


def test_what_is_typed_counts_no_longer() -> None:
    text, likely = pieces(("foo", 0.5), ("(bar", 0.8), (")", 0.95), end=0.95)
    assert gated(text, likely, 0.55) == ""
    assert gated(text[3:], rest_of(likely, 3), 0.55) == "(bar)"
    # Of the end inside of a token nothing is known.
    assert [piece.end for piece in rest_of(likely, 5)][:2] == [IMPOSSIBLE, likely[2].end]
    empty = [LikelyPiece(0, -1.0), *likely]
    assert rest_of(empty, 0) == empty


def test_pieces_fit_a_text_of_which_characters_are_left_out() -> None:
    text, likely = pieces(("a  \r", 0.9), ("\nb", 0.8), (" ", 0.7), ("c", 0.6))
    found = aligned(likely, text, "a\nb c")
    assert [piece.length for piece in found] == [1, 2, 1, 1]
    assert [piece.logprob for piece in found] == [piece.logprob for piece in likely]
    assert [piece.length for piece in aligned(likely, text, "a")] == [1, 0, 0, 0]


@data_cases()
def test_one_statement_or_block_at_most(prefix: str, text: str, cut: str | None) -> None:
    found = stopping.statement(prefix)(text)
    assert (None if found is None else text[:found]) == cut


def test_what_would_not_be_shown_is_not_written() -> None:
    watch = GateWatch(0.4, lambda: False)
    written = [("a = ", 0.9), ("b", 0.2), ("(", 0.5), ("c", 0.9), (")", 0.9)]
    told = 0

    def steps():  # type: ignore[no-untyped-def]
        nonlocal told
        for text, chance in written:
            if watch.cancelled():
                break
            told += 1
            yield [Span(text, "model", math.log(chance), end_logprob=math.log(0.01))]
        text = "".join(part for part, _ in written[:told])
        return JobResult(text, [Span(text, "model")], told, told, 0, 0, {}, "cancelled")

    stream = watch.over(steps())
    while True:
        try:
            next(stream)
        except StopIteration as end:
            result = end.value
            break
    assert (told, result.text, result.stopped_by) == (3, "a = b(", "unsure")
    assert [span.text for span in result.spans] == ["a = b("]


# The provider


def write(written: Request, *likely: tuple[str, float]) -> None:
    """Tokens and their probabilities; the text hardly ends before one, but before a line end."""
    assert written.call.on_spans is not None
    for text, chance in likely:
        written.text += text.rstrip("\n")
        end = math.log(0.01 if text.strip() else chance)
        written.call.on_spans([Span(text, "model", math.log(chance), end_logprob=end)])


BALANCED = {"completion": {"gate": "balanced"}}
UNSURE = least_joint(THRESHOLDS["balanced"]) / 2


async def test_what_is_sure_is_shown_before_the_rest_is_written() -> None:
    session = Session(**BALANCED)
    asked = session.ask()
    await settle()
    assert session.fresh[0].job.gate == least_joint(THRESHOLDS["balanced"])
    write(session.fresh[0], ("total", 0.95), (" +", 0.95), (" name", UNSURE))
    assert texts(await asked) == ["total"]
    write(session.fresh[0], ("\n", 0.9))
    session.fresh[0].end()
    for typed, rest in (("t", ["otal"]), ("total +", [])):
        answer = await session.ask(typed)
        assert answer is not None
        assert answer.without_model
        assert answer.texts == rest
    assert len(session.fresh) == 1
    assert not session.ahead
    # Of the rest of a word that was begun the model may be sure: it is asked.
    begun = session.ask("total + n")
    await settle()
    write(session.fresh[1], ("ame", 0.95), ("\n", 0.95))
    session.fresh[1].end()
    assert texts(await begun) == ["ame"]


async def test_the_rest_comes_into_sight_while_one_types() -> None:
    session = Session(**BALANCED)
    asked = session.ask()
    await settle()
    write(session.fresh[0], ("path", 0.4), ("(", 0.95), ("name", 0.8), (")", 0.95), ("\n", 0.9))
    session.fresh[0].end()
    assert texts(await asked) == []
    assert texts(await session.ask("path")) == ["(name)"]
    assert len(session.fresh) == 1


async def test_where_the_rest_of_a_token_shows_nothing_the_model_is_not_asked() -> None:
    session = Session(**BALANCED)
    asked = session.ask()
    await settle()
    write(session.fresh[0], ("path", 0.4), ("(name", 0.05), (")", 0.4), ("\n", 0.9))
    session.fresh[0].end()
    assert texts(await asked) == []
    for typed in ("p", "pat", "path", "path(na"):
        answer = await session.ask(typed)
        assert answer is not None
        assert (answer.texts, answer.without_model) == ([], True)
    assert len(session.fresh) == 1


async def test_a_text_is_written_on_once_all_of_it_that_is_left_is_likely() -> None:
    session = Session(**BALANCED)
    asked = session.ask()
    await settle()
    write(session.fresh[0], ("total", 0.95), (" +", 0.95), (" name", UNSURE), ("(", 0.9))
    session.fresh[0].end(stopped_by="unsure")
    assert texts(await asked) == ["total"]
    answer = await session.ask("total +")
    assert answer is not None
    assert (answer.texts, answer.without_model) == ([], True)
    typed = session.ask("total + name")
    await settle()
    write(session.fresh[1], ("(", 0.95), ("rate)", 0.95), ("\n", 0.95))
    session.fresh[1].end()
    assert texts(await typed) == ["(rate)"]


async def test_by_hand_all_is_shown_and_written() -> None:
    session = Session(completion={"gate": "balanced", "alternatives": 1})
    asked = session.ask()
    await settle()
    write(session.fresh[0], ("path", 0.95), (" (name)", UNSURE))
    session.fresh[0].end()
    assert texts(await asked) == []
    by_hand = session.ask(invoked=True)
    await settle()
    assert session.fresh[1].job.gate == 0
    session.fresh[1].end("path(name)")
    assert texts(await by_hand) == ["path(name)"]


async def test_nothing_sure_has_a_reason() -> None:
    session = Session(**BALANCED)
    asked = session.ask()
    await settle()
    write(session.fresh[0], ("path", UNSURE))
    answer = await asked
    assert answer is not None
    assert not answer.texts
    assert "redraft.completion.gate" in answer.reason


@pytest.mark.parametrize(
    ("around", "reason"),
    [({"suffix": " + rate\n"}, NOTHING_MISSING), ({"prefix": "# Counts "}, IN_PROSE)],
)
async def test_where_nothing_is_missing_the_model_is_asked_by_hand_alone(
    around: dict[str, str], reason: str
) -> None:
    session = Session(completion={"gate": "balanced", "alternatives": 1})
    answer = await session.ask(**around)
    assert answer is not None
    assert (answer.texts, answer.reason) == ([], reason)
    assert not session.fresh
    by_hand = session.ask(**around, invoked=True)
    await settle()
    session.fresh[0].end("path")
    assert texts(await by_hand) == ["path"]


@pytest.mark.parametrize("gate", list(THRESHOLDS))
async def test_a_server_without_probabilities_is_not_gated(gate: str) -> None:
    session = Session(completion={"gate": gate})
    asked = session.ask()
    await settle()
    session.fresh[0].end("path(name)")
    assert texts(await asked) == ["path(name)"]


def test_a_suggestion_that_grows_is_the_same_offer() -> None:
    offers = Offers(AcceptanceRates())

    def ask(typed: str) -> CompletionRequest:
        return CompletionRequest("d", "d.py", "", "python", "x = " + typed, "\n")

    number = offers.show(ask(""), ["foo("])
    assert offers.show(ask("fo"), ["o(bar)"]) == number
    assert offers.accepted({"id": number, "length": 4}) == (ask(""), "foo(ba")
    assert offers.show(ask("foo(bar)"), [" + 1"]) != number


def test_what_was_taken_whole_ends_an_offer() -> None:
    offers = Offers(AcceptanceRates())
    ask = CompletionRequest("d", "d.py", "", "python", "x = ", "\n")
    number = offers.show(ask, ["foo("])
    assert offers.accepted({"id": number, "length": 4}) == (ask, "foo(")
    after = CompletionRequest("d", "d.py", "", "python", "x = foo(", "\n")
    assert offers.show(after, ["bar)"]) != number


def test_settings_name_the_steps() -> None:
    assert asyncio.run(_gate_of("quiet")) > asyncio.run(_gate_of("balanced"))
    assert asyncio.run(_gate_of("balanced")) > asyncio.run(_gate_of("eager")) > 0
    assert asyncio.run(_gate_of("off")) == 0


async def _gate_of(name: str) -> float:
    session = Session(completion={"gate": name})
    asked = session.ask()
    await settle()
    gate: float = session.fresh[0].job.gate
    session.fresh[0].end("x")
    await asked
    return gate
