"""How much of a suggestion is shown: the rule against a slow one, typing along, statements."""

from __future__ import annotations

import asyncio
import itertools
import math
import random
from collections.abc import Sequence

import pytest
from engine_stand_in import Request
from staged_engine import Session, play, settle, texts

from lsp_server.editor.completion import provider as provider_module
from lsp_server.editor.completion.acceptance_rates import AcceptanceRates
from lsp_server.editor.completion.offers import Offers
from lsp_server.editor.completion.request import CompletionRequest
from lsp_server.shared.contract.jobs import JobResult, Span
from lsp_server.tasks.completion import stopping
from lsp_server.tasks.completion.gate import (
    THRESHOLDS,
    GateWatch,
    LikelyPiece,
    aligned,
    gated,
    is_inside,
    rest_of,
    standing_end,
    sure_length,
)

OPENERS = (":", "{", "(", "[", "=>", "->", "=", ",", "\\")


def slow_sure_length(pieces: Sequence[LikelyPiece], threshold: float) -> int:
    """The longest run by trying all of them."""
    lengths = [0]
    for count in range(1, len(pieces) + 1):
        run = pieces[:count]
        if math.prod(math.exp(piece.logprob) for piece in run) < threshold:
            break
        lengths.append(sum(piece.length for piece in run))
    return lengths[-1]


def slow_standing_end(text: str, sure: int) -> int:
    """The last end by looking at all of them, the best kind first."""
    line_ends = [
        place
        for place in range(sure + 1)
        if place < len(text) and text[place] == "\n" and text[:place].strip()
    ]
    standing = [place for place in line_ends if not text[:place].rstrip().endswith(OPENERS)]
    if standing or line_ends:
        return len(text[: (standing or line_ends[:1])[-1]].rstrip())
    words = [
        place
        for place in range(sure + 1)
        if text[:place].strip()
        and not (
            0 < place < len(text)
            and (text[place - 1].isalnum() or text[place - 1] == "_")
            and (text[place].isalnum() or text[place] == "_")
        )
    ]
    if not words:
        return 0
    shown = text[: words[-1]]
    while shown and shown[-1] in "+-*/%=<>!&|^~,.?: \t\\":
        shown = shown[:-1]
    return len(shown)


def random_text(rng: random.Random) -> str:
    parts = [
        "foo",
        "x_1",
        " ",
        " = ",
        "(",
        ")",
        ",",
        ":",
        "\n",
        "\n    ",
        ".",
        "if a:",
        "{",
        "é",
        "12",
    ]
    return "".join(rng.choice(parts) for _ in range(rng.randrange(1, 14)))


def test_the_rule_equals_a_slow_one() -> None:
    rng = random.Random(seed := random.randrange(1 << 30))
    for _ in range(3000):
        text = random_text(rng)
        borders = sorted({0, len(text), *(rng.randrange(len(text) + 1) for _ in range(5))})
        pieces = [
            LikelyPiece(end - start, math.log(rng.uniform(0.3, 1)))
            for start, end in itertools.pairwise(borders)
        ]
        threshold = rng.choice([0.1, 0.4, 0.8])
        sure = slow_sure_length(pieces, threshold)
        assert sure_length(pieces, threshold) == sure, f"seed {seed}"
        if text.strip():
            assert standing_end(text, sure) == slow_standing_end(text, sure), (seed, text, sure)
        shown = gated(text, pieces, threshold)
        assert text.startswith(shown), f"seed {seed}"
        assert len(shown) <= sure or shown == text, f"seed {seed}"


def pieces(*likely: tuple[str, float]) -> tuple[str, list[LikelyPiece]]:
    text = "".join(part for part, _ in likely)
    return text, [LikelyPiece(len(part), math.log(chance)) for part, chance in likely]


@pytest.mark.parametrize(
    ("likely", "shown"),
    [
        ((("return", 0.9), (" total", 0.9)), "return total"),
        ((("return", 0.9), (" total", 0.2)), "return"),
        ((("re", 0.9), ("turn", 0.2)), ""),
        ((("self", 0.9), (".", 0.9), ("items", 0.2)), "self"),
        ((("print", 0.9), ("(", 0.9), ("x", 0.2)), "print("),
        ((("a = 1", 0.9), ("\n", 0.9), ("b", 0.9), (" = 2", 0.2)), "a = 1"),
        ((("if a", 0.9), (":\n    ", 0.9), ("b", 0.2), ("()", 0.9)), "if a:"),
        ((("a", 0.9), ("\nif b:", 0.9), ("\n", 0.9), ("    c", 0.2)), "a"),
        ((("x", 0.1),), ""),
    ],
)
def test_where_a_suggestion_is_cut(likely: tuple[tuple[str, float], ...], shown: str) -> None:
    assert gated(*pieces(*likely), 0.4) == shown


def test_without_probabilities_or_a_gate_all_is_shown() -> None:
    text, likely = pieces(("a", 0.01), ("b", 0.01))
    assert gated(text, [], 0.4) == "ab"
    assert gated(text, likely, 0.0) == "ab"


def test_what_is_typed_counts_no_longer() -> None:
    text, likely = pieces(("foo", 0.5), ("(bar", 0.5), (")", 0.9))
    assert gated(text, likely, 0.4) == "foo"
    assert gated(text[3:], rest_of(likely, 3), 0.4) == "(bar)"
    assert gated(text[5:], rest_of(likely, 5), 0.4) == "ar)"
    assert [is_inside(likely, typed) for typed in range(9)] == [
        *(False, True, True, False, True, True, True, False, False)
    ]
    empty = [LikelyPiece(0, -1.0), *likely]
    assert rest_of(empty, 0) == empty


def test_pieces_fit_a_text_of_which_characters_are_left_out() -> None:
    text, likely = pieces(("a  \r", 0.9), ("\nb", 0.8), (" ", 0.7), ("c", 0.6))
    found = aligned(likely, text, "a\nb c")
    assert [piece.length for piece in found] == [1, 2, 1, 1]
    assert [piece.logprob for piece in found] == [piece.logprob for piece in likely]
    assert [piece.length for piece in aligned(likely, text, "a")] == [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("prefix", "text", "cut"),
    [
        ("def f():\n    a = 1\n    ", "b = 2\n    c = 3", "b = 2"),
        ("def f():\n    a = 1\n    ", "if a:\n        b()\n    else:\n        c()\n    d()",
         "if a:\n        b()\n    else:\n        c()"),
        ("def f():\n    a = 1\n    ", "f(\n    1,\n    )\n    g()", "f(\n    1,\n    )"),
        ("def f():\n    ", "a = 1\n    return a", None),
        ("def f():\n    a = 1\n    ", "b = 2\n    el", None),
        ("def f():\n    a = 1\n    ", "b = 2\n    elder = 1", "b = 2"),
        ("  a();\n  ", "if (b) {\n    c();\n  }\n  d();", "if (b) {\n    c();\n  }"),
        ("a = ", "1\nb = 2", "1"),
        ("x = 1\n", "\n\ny = 2\nz = 3", "\n\ny = 2"),
    ],
)  # fmt: skip
def test_one_statement_or_block_at_most(prefix: str, text: str, cut: str | None) -> None:
    found = stopping.statement(prefix)(text)
    assert (None if found is None else text[:found]) == cut


def test_what_would_not_be_shown_is_not_written() -> None:
    watch = GateWatch(0.4, lambda: False)
    written = [("a = ", 0.9), ("b", 0.2), ("\n", 0.9), ("c", 0.9), ("d", 0.9)]
    told = 0

    def steps():  # type: ignore[no-untyped-def]
        nonlocal told
        for text, chance in written:
            if watch.cancelled():
                break
            told += 1
            yield [Span(text, "model", math.log(chance))]
        text = "".join(part for part, _ in written[:told])
        return JobResult(text, [Span(text, "model")], told, told, 0, 0, {}, "cancelled")

    stream = watch.over(steps())
    while True:
        try:
            next(stream)
        except StopIteration as end:
            result = end.value
            break
    assert (told, result.text, result.stopped_by) == (3, "a = b", "stop")
    assert [span.text for span in result.spans] == ["a = b"]


# The provider


@pytest.fixture(autouse=True)
def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_module, "AHEAD_S", 0.0)


def write(written: Request, *likely: tuple[str, float]) -> None:
    assert written.call.on_spans is not None
    for text, chance in likely:
        written.text += text
        written.call.on_spans([Span(text, "model", math.log(chance))])


BALANCED = {"completion": {"gate": "balanced"}}
UNSURE = THRESHOLDS["balanced"] / 2


def test_what_is_sure_is_shown_before_the_rest_is_written() -> None:
    async def scene(session: Session) -> None:
        asked = session.ask()
        await settle()
        assert session.fresh[0].job.gate == THRESHOLDS["balanced"]
        write(session.fresh[0], ("path", 0.9), ("(", 0.9), ("name", UNSURE))
        assert texts(await asked) == ["path("]
        write(session.fresh[0], (")", 0.9))
        session.fresh[0].end()
        for typed, rest in (("p", ["ath("]), ("path(", [])):
            answer = await session.ask(typed)
            assert answer is not None
            assert answer.without_model
            assert answer.texts == rest
        assert len(session.fresh) == 1
        assert not session.ahead
        # Of the rest of a word that was begun the model may be sure: it is asked.
        begun = session.ask("path(n")
        await settle()
        write(session.fresh[1], ("ame", 0.9))
        session.fresh[1].end()
        assert texts(await begun) == ["ame"]

    play(scene, **BALANCED)


def test_the_rest_comes_into_sight_while_one_types() -> None:
    async def scene(session: Session) -> None:
        asked = session.ask()
        await settle()
        write(session.fresh[0], ("path", 0.6), ("(", 0.9), ("name", 0.3), (")", 0.9))
        session.fresh[0].end()
        assert texts(await asked) == ["path("]
        assert texts(await session.ask("path")) == ["(name)"]
        assert len(session.fresh) == 1

    play(scene, **BALANCED)


def test_by_hand_all_is_shown_and_written() -> None:
    async def scene(session: Session) -> None:
        asked = session.ask()
        await settle()
        write(session.fresh[0], ("path", 0.6), ("(name)", 0.3))
        session.fresh[0].end()
        assert texts(await asked) == ["path"]
        by_hand = session.ask(invoked=True)
        await settle()
        assert session.fresh[1].job.gate == 0
        session.fresh[1].end("path(name)")
        assert texts(await by_hand) == ["path(name)"]

    play(scene, completion={"gate": "balanced", "alternatives": 1})


def test_nothing_sure_has_a_reason() -> None:
    async def scene(session: Session) -> None:
        asked = session.ask()
        await settle()
        write(session.fresh[0], ("path", UNSURE))
        answer = await asked
        assert answer is not None
        assert not answer.texts
        assert "redraft.completion.gate" in answer.reason

    play(scene, **BALANCED)


@pytest.mark.parametrize("gate", list(THRESHOLDS))
def test_a_server_without_probabilities_is_not_gated(gate: str) -> None:
    async def scene(session: Session) -> None:
        asked = session.ask()
        await settle()
        session.fresh[0].end("path(name)")
        assert texts(await asked) == ["path(name)"]

    play(scene, completion={"gate": gate})


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
