"""What a user sees at the cursor: one key never has two meanings."""

from __future__ import annotations

import asyncio

import pytest
from typist import Typist

from lsp_server.editor.screen import Screen
from lsp_server.shared.settings import ScreenSettings
from lsp_server.text.documents.document import Document, Position

RENAMED = "def total(prices):\n    kept = prices\n    return sum(prices) + len(kept)\n"
GIVEN = "def total(prices):\n    return sum(prices)\n\n\nprint(total([1]))\nprint(total([2]))\n"


class User(Typist):
    """A typist who looks at the screen of an editor that draws next edits."""

    def __init__(self) -> None:
        super().__init__()
        self.screen = Screen(self.provider)
        self.screen.draws_next_edits = True

    def change(self, document: Document, *change: object) -> object:  # type: ignore[override]
        self.screen.changed(document.uri)
        return super().change(document, *change)  # type: ignore[arg-type]

    def sees_ghost_text(
        self, document: Document, place: Position, *, is_asked_for: bool = False
    ) -> bool:
        shows = self.screen.shows_suggestion(document, place, is_asked_for=is_asked_for)
        return asyncio.run(shows)

    def sees_next_edit(self, document: Document, place: Position) -> bool:
        return bool(self.next_edits(document, place)) and self.screen.shows_next_edit(
            document, place
        )


def test_what_a_rename_settles_comes_before_ghost_text_to_its_end() -> None:
    user = User()
    document = user.open(RENAMED)
    cursor = user.retype(document, 0, "prices", "amounts")
    assert not user.sees_ghost_text(document, cursor)
    assert user.sees_next_edit(document, cursor)
    while found := user.next_edits(document, cursor):
        assert not user.sees_ghost_text(document, found[0].region.start)
        user.take(document, found[0])
        assert not user.sees_ghost_text(document, found[0].region.end)
    assert document.text == RENAMED.replace("prices", "amounts")
    user.change(document, (1, 18), (1, 18), "\n")
    assert user.sees_ghost_text(document, Position(2, 0))


def test_no_ghost_text_comes_in_the_pause_before_next_edits() -> None:
    user = User()
    document = user.open(RENAMED)
    user.retype(document, 0, "prices", "amount")
    assert not user.sees_ghost_text(document, Position(0, 16))
    user.change(document, (0, 16), (0, 16), "s")
    assert not user.sees_ghost_text(document, Position(0, 17))


def test_a_key_that_leads_to_nothing_gives_ghost_text_its_place() -> None:
    user = User()
    document = user.open(GIVEN)
    user.change(document, (0, 16), (0, 16), ", tax")
    user.now_s += 0.5
    cursor = Position(0, 21)
    assert user.sees_next_edit(document, cursor)
    assert not user.sees_ghost_text(document, cursor)
    user.change(document, (1, 22), (1, 22), "\n    ")
    user.now_s += 0.5
    below = Position(2, 4)
    assert user.sees_ghost_text(document, below)
    assert user.next_edits(document, below), "the calls are left"
    assert not user.sees_next_edit(document, below), "they wait behind the ghost text"
    assert user.sees_next_edit(document, Position(4, 0)), "which is not where the cursor is"


def test_next_edits_that_are_left_do_not_keep_ghost_text_from_what_is_typed_elsewhere() -> None:
    user = User()
    document = user.open(RENAMED + "\n" * 20)
    cursor = user.retype(document, 0, "prices", "amounts")
    assert user.sees_next_edit(document, cursor)
    user.now_s += 5
    user.change(document, (20, 0), (20, 0), "x = ")
    assert user.sees_ghost_text(document, Position(20, 4))
    assert user.next_edits(document, Position(2, 0)), "they are left"


def test_what_came_first_for_a_text_stays() -> None:
    user = User()
    document = user.open(RENAMED)
    place = Position(2, 0)
    assert user.screen.shows_next_edit(document, place), "a model's"
    assert not user.sees_ghost_text(document, place)
    user.change(document, (2, 0), (2, 0), "#")
    assert user.sees_ghost_text(document, place)
    assert not user.screen.shows_next_edit(document, place)


def test_what_is_asked_for_comes() -> None:
    user = User()
    document = user.open(RENAMED)
    cursor = user.retype(document, 0, "prices", "amounts")
    assert not user.sees_ghost_text(document, cursor)
    assert user.sees_ghost_text(document, cursor, is_asked_for=True)


def test_nothing_is_held_back_from_a_client_that_draws_no_next_edits() -> None:
    user = User()
    user.screen.draws_next_edits = False
    document = user.open(RENAMED)
    cursor = user.retype(document, 0, "prices", "amounts")
    assert user.sees_ghost_text(document, cursor)


def test_what_was_sent_away_holds_nothing_back() -> None:
    user = User()
    document = user.open(RENAMED)
    cursor = user.retype(document, 0, "prices", "amounts")
    for one in user.next_edits(document, cursor):
        user.provider.reject(one.number)
    assert user.sees_ghost_text(document, cursor)


def test_a_next_edit_that_is_typed_keeps_its_place() -> None:
    user = User()
    document = user.open(RENAMED)
    cursor = user.retype(document, 0, "prices", "amounts")
    user.next_edits(document, cursor)
    user.now_s += 5
    user.change(document, (1, 11), (1, 17), "a")
    assert not user.sees_ghost_text(document, Position(1, 12))
    user.change(document, (1, 12), (1, 12), "x")
    assert user.sees_ghost_text(document, Position(1, 13))


@pytest.mark.parametrize("text", ["x = 1\n", "def total(amounts):\n    return 1\n"])
def test_ghost_text_comes_where_nothing_is_settled(text: str) -> None:
    user = User()
    document = user.open(text)
    user.change(document, (1, 0), (1, 0), "value = ")
    assert user.sees_ghost_text(document, Position(1, 8))


def test_a_text_that_went_on_meanwhile_gets_none() -> None:
    user = User()
    document = user.open(RENAMED)
    place = Position(2, 0)

    async def typed_while_it_is_decided() -> bool:
        decided = asyncio.create_task(
            user.screen.shows_suggestion(document, place, is_asked_for=False)
        )
        await asyncio.sleep(0)
        user.change(document, (2, 0), (2, 0), "#")
        document.version += 1
        return await decided

    user.change(document, (2, 0), (2, 0), "#")
    assert not asyncio.run(typed_while_it_is_decided())


def test_nothing_comes_before_no_key_came_for_as_long_as_the_user_wants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 10.0
    waits: list[float] = []
    screen = Screen(Typist().provider, lambda: ScreenSettings(idle_ms=500), lambda: now_s)

    async def sleep(seconds: float) -> None:
        nonlocal now_s
        waits.append(round(seconds, 3))
        now_s += seconds
        if len(waits) == 1:
            now_s -= 0.2
            screen.changed("file:///code.py")
            now_s += 0.2

    monkeypatch.setattr(asyncio, "sleep", sleep)
    assert asyncio.run(screen.is_time(is_asked_for=False))
    assert waits == [], "no key ever came"
    screen.changed("file:///code.py")
    assert asyncio.run(screen.is_time(is_asked_for=True))
    assert waits == [], "who asks gets it at once"
    assert asyncio.run(screen.is_time(is_asked_for=False))
    assert waits == [0.5, 0.3], "another key came meanwhile"


@pytest.mark.parametrize(
    ("typed", "is_whole"), [("prices", True), ("price", False), ("prices.", False)]
)
def test_a_name_is_whole_if_the_text_has_it_elsewhere_and_no_key_comes(
    monkeypatch: pytest.MonkeyPatch, typed: str, is_whole: bool
) -> None:
    now_s = 10.0
    screen = Screen(Typist().provider, clock=lambda: now_s)
    document = Document("file:///code.py", "python", 1, f"{RENAMED}x = {typed}\n")
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(round(seconds, 3))
        document.version += len(waits) - 1

    monkeypatch.setattr(asyncio, "sleep", sleep)
    screen.changed(document.uri)
    place = Position(3, 4 + len(typed))
    assert asyncio.run(screen.is_name_whole(document, place)) == is_whole
    assert waits == [0.4] * is_whole
    assert not asyncio.run(screen.is_name_whole(document, place)), "another key came meanwhile"


def test_nothing_comes_before_a_key_asks_for_it() -> None:
    screen = Screen(Typist().provider, lambda: ScreenSettings(only_asked=True))
    assert not asyncio.run(screen.is_time(is_asked_for=False))
    assert asyncio.run(screen.is_time(is_asked_for=True))


def test_what_comes_behind_ghost_text_waits_until_that_is_decided() -> None:
    screen = Screen(Typist().provider)
    uri, order = "file:///code.py", list[str]()

    async def suggests(again: asyncio.Event) -> None:
        with screen.deciding(uri):
            await again.wait()
            order.append("ghost text")

    async def proposes() -> None:
        await screen.suggestion_decided(uri)
        order.append("next edit")

    async def both() -> None:
        again = asyncio.Event()
        asked = asyncio.create_task(suggests(again))
        await asyncio.sleep(0)
        proposed = asyncio.create_task(proposes())
        await asyncio.sleep(0)
        again.set()
        await asyncio.gather(asked, proposed)
        await proposes()

    asyncio.run(both())
    assert order == ["ghost text", "next edit", "next edit"]
