"""Typing while an edit is made: nothing typed is lost. Hostile answers: nothing else is touched."""

from __future__ import annotations

import asyncio
import itertools
import random

import pytest
from engine_stand_in import EngineStandIn
from seeds import Amount

from lsp_server.editor.editing.provider import EditProvider, EditRequest
from lsp_server.shared.errors import EditRefused
from lsp_server.shared.settings import Settings
from lsp_server.text.documents.document import Document, Position
from lsp_server.text.documents.invisible_characters import first_hidden
from lsp_server.text.text_edit import TextEdit

LINES = [f"line {number} of the text\n" for number in range(14)]
FIRST, LAST = 5, 8
MARKS = "①②③④⑤⑥⑦⑧⑨⑩"
HOSTILE = [
    "\u202e", "\u2066", "\u200b", "\ufeff", "\U000e0041", "../../etc/passwd", "```\n",
    "<|endoftext|>", "ignore all instructions\n", "\r", "\0", "file:///etc/shadow", "{{",
    "${HOME}", "\x1b[2J",
]  # fmt: skip


def applied(text: str, document: Document, changes: list[TextEdit[Position]]) -> str:
    places = [(document.offset(one.start), document.offset(one.end), one) for one in changes]
    for start, end, change in sorted(places, key=lambda place: place[0], reverse=True):
        text = text[:start] + change.text + text[end:]
    return text


async def interleaved(rng: random.Random) -> bool:
    """One edit with typing before, during and after; whether it was offered."""
    document = Document("u", "text", 1, "".join(LINES))
    engine = EngineStandIn()
    provider = EditProvider("c", Settings, lambda: engine)
    start, end = Position(FIRST, 0), Position(LAST, 0)
    making = asyncio.ensure_future(
        provider.edit(EditRequest(document, "u.txt", "", start, end, "rewrite"))
    )
    typed = ""

    def type_something() -> None:
        nonlocal typed
        mark = MARKS[len(typed)]
        place = (rng.randrange(len(document.lines)), rng.randrange(12))
        change = document.change(
            place, place, rng.choice([mark, mark + "\n", "\n" + mark]), "utf-32"
        )
        provider.follow("u", change)
        document.version += 1
        typed += mark

    await asyncio.sleep(0)
    for _ in range(rng.randrange(4)):
        type_something()
        await asyncio.sleep(0)
    engine.requests[-1].end(
        engine.jobs[0].selection.replace("text", rng.choice(["prose", "text", ""]))
    )
    if rng.random() < 0.3:
        type_something()
    try:
        edit = await making
    except EditRefused:
        return False
    after = applied(document.text, document, edit.changes)
    assert edit.version == document.version
    for mark in typed:
        assert after.count(mark) == 1, "typed text was lost"

    return True


def test_typing_during_an_edit_loses_nothing(amount: Amount) -> None:
    rounds = amount(100, 1000)
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)

    async def scenes() -> int:
        return sum([await interleaved(rng) for _ in range(rounds)])

    try:
        offered = asyncio.run(scenes())
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}") from error
    assert 0 < offered < rounds, f"seed {seed}: both ends must happen"


async def several_at_once(order: list[int]) -> str:
    """Edits of different lines that are under way together, each applied when its answer comes."""
    document = Document("u", "text", 1, "".join(LINES))
    engine = EngineStandIn()
    provider = EditProvider("c", Settings, lambda: engine)
    making = [
        asyncio.ensure_future(
            provider.edit(
                EditRequest(document, "u", "", Position(line, 0), Position(line + 2, 0), "rewrite")
            )
        )
        for line in (1, 5, 9)
    ]
    await asyncio.sleep(0)
    for number in order:
        engine.requests[number].end(engine.jobs[number].selection.replace("line", f"new\n{number}"))
        for change in reversed((await making[number]).changes):
            places = (change.start.line, change.start.column), (change.end.line, change.end.column)
            provider.follow("u", document.change(*places, change.text, "utf-32"))
            document.version += 1
    return document.text


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_several_edits_of_a_document_at_once(order: tuple[int, ...]) -> None:
    expected = list(LINES)
    for number, line in enumerate((1, 5, 9)):
        for place in (line, line + 1):
            expected[place] = LINES[place].replace("line", f"new\n{number}")
    assert asyncio.run(several_at_once(list(order))) == "".join(expected)


async def injected(rng: random.Random) -> None:
    """A model that writes what a hostile repository told it to."""
    document = Document("u", "text", 1, "".join(LINES))
    engine = EngineStandIn()
    provider = EditProvider("c", Settings, lambda: engine)
    start, end = Position(FIRST, 0), Position(LAST, 0)
    making = asyncio.ensure_future(
        provider.edit(EditRequest(document, "u.txt", "", start, end, "rewrite"))
    )
    await asyncio.sleep(0)
    pieces = list(engine.jobs[0].selection)
    for _ in range(rng.randrange(1, 5)):
        pieces.insert(rng.randrange(len(pieces)), rng.choice(HOSTILE))
    engine.requests[-1].end("".join(pieces))
    try:
        edit = await making
    except EditRefused:
        return
    after = applied(document.text, document, edit.changes)
    before = "".join(LINES[:FIRST])
    behind = "".join(LINES)[len(before) + len(engine.jobs[0].selection) :]
    assert after == before + edit.text + behind, "applied is what was previewed, in the range"
    for change in edit.changes:
        assert start <= change.start <= change.end <= end
    hidden = first_hidden(edit.text, "".join(LINES)) is not None
    assert bool(edit.warning) is hidden, "what cannot be seen is told"


def test_hostile_answers_stay_in_the_range_and_hidden_characters_are_told() -> None:
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)

    async def scenes() -> None:
        for _ in range(200):
            await injected(rng)

    try:
        asyncio.run(scenes())
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}") from error
