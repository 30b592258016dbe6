"""A model is asked for windows: what is shown of its answers, and when it is not asked."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest
from text_cases import data_cases
from typist import Typist
from written_answers import WrittenAnswers

from lsp_server.editor.next_edits import provider
from lsp_server.editor.next_edits.answers import NoWindow, TakenBack, read_answer
from lsp_server.editor.next_edits.model import NextEditModel
from lsp_server.editor.next_edits.suggestion import Suggestion
from lsp_server.editor.next_edits.windows import Window
from lsp_server.engine.client import EngineClient
from lsp_server.shared.contract.jobs import EDIT, PREFETCH, JobResult
from lsp_server.shared.contract.prompt_length import STEP
from lsp_server.shared.settings import NextEditSettings
from lsp_server.tasks.next_edits.formats import FORMATS
from lsp_server.text.documents.document import Position

TEXT = """\
class Box:
    def __init__(self, width):
        self.width = width

    def area(self):
        return self.width * self.width

    def show(self):
        print(self.width)
        print(self)
"""
NOW = TEXT.replace("self, width)", "self, width, height)")
"""Behind the edit of the tests."""
NEXT = NOW.replace("= width\n", "= width\n        self.height = height\n")
MORE = NEXT.replace("print(self)", "print(self.height)")


class Setting:
    """Somebody added a parameter; its model is asked for what comes next."""

    def __init__(self, **settings: Any) -> None:
        self.engine = WrittenAnswers()
        self.more: list[str] = []
        self.typist = Typist()
        self.provider = self.typist.provider
        shown = NextEditSettings(**{"format": "redraft", **settings})
        engine = cast(EngineClient, self.engine)
        self.provider.model = NextEditModel("test", lambda: shown, lambda: engine)
        self.provider._on_more = self.more.append
        self.document = self.typist.open(TEXT)
        self.cursor = self.type(1, 28, ", height")

    def type(self, line: int, column: int, text: str) -> Position:
        """Type some characters, and pause."""
        for number, one in enumerate(text):
            place = line, column + number
            self.typist.change(self.document, place, place, one)
            self.typist.now_s += 0.1
        self.typist.now_s += 3
        return Position(line, column + len(text))

    async def ask(self, cursor: Position | None = None) -> asyncio.Task[Any]:
        """Ask for next edits, as far as the model."""
        asked = self.provider.next_edits(self.document, cursor or self.cursor)
        task = asyncio.create_task(cast(Any, asked))
        for _ in range(5):
            await asyncio.sleep(0)
        if self.provider._search is not None:
            # Other files are looked at first.
            await asyncio.wait([self.provider._search])
            for _ in range(5):
                await asyncio.sleep(0)
        return task

    async def answered(self, text: str, likely: float = 1.0) -> list[Suggestion]:
        """What is proposed for a whole answer."""
        task = await self.ask()
        await self.engine.write(text, likely)
        await self.engine.end()
        return cast(list[Suggestion], await task)


def texts(found: list[Suggestion]) -> list[str | None]:
    return [one.new_text for one in found]


async def test_the_first_change_comes_before_the_answer_ends_and_the_others_behind_it() -> None:
    setting = Setting()
    task = await setting.ask()
    assert "def __init__(self, width, height):" in setting.engine.asked[0].prediction
    place = MORE.index("    def area")
    await setting.engine.write(MORE[:place])
    assert not task.done()
    await setting.engine.write(MORE[place : MORE.index("    def show")])
    assert texts(await task) == ["        self.height = height\n"]
    await setting.engine.write(MORE[MORE.index("    def show") :])
    await setting.engine.end()
    assert setting.more == [setting.document.uri]
    found = await setting.provider.next_edits(setting.document, setting.cursor)
    assert found is not None
    assert texts(found) == ["        self.height = height\n", ".height"]
    assert len(setting.engine.asked) == 1


async def test_what_a_key_changes_comes_late_in_the_prompt() -> None:
    """Where the cursor is in the last edit, it shows as the window before and after it."""
    setting = Setting()

    async def prompt(cursor: Position) -> str:
        task = await setting.ask(cursor)
        await setting.engine.end("cancelled")
        await task
        return "".join(text for text, _ in setting.engine.asked[-1].pieces)

    first = await prompt(setting.cursor)
    setting.cursor = setting.type(setting.cursor.line, setting.cursor.column, "s")
    second = await prompt(setting.cursor)
    changed = "    def __init__(self, width, height"
    assert first[: first.index(changed)] == second[: second.index(changed)]
    assert TEXT in first[: first.index(changed)]
    assert NOW in first
    assert NOW.replace("height", "heights") in second
    elsewhere = await prompt(Position(8, 0))
    assert "updated:\n" in elsewhere
    assert TEXT not in elsewhere


async def test_a_key_stops_the_model_and_its_answer() -> None:
    setting = Setting()
    task = await setting.ask()
    await setting.engine.write(NEXT[:60])
    cursor = setting.type(2, 26, "x")
    await setting.engine.wait_for_cancels(1)
    await task
    task = await setting.ask(cursor)
    assert len(setting.engine.asked) == 2
    await setting.engine.end("cancelled")
    assert await task == []


async def test_what_is_taken_is_an_edit_like_the_users_own_and_is_not_proposed_again() -> None:
    setting = Setting()
    (found,) = await setting.answered(NEXT)
    setting.typist.take(setting.document, found)
    assert setting.document.text == NEXT
    setting.typist.now_s += 3
    assert setting.typist.history.last is not None
    assert "self.height = height" in setting.typist.history.last.new_text
    setting.cursor = Position(3, 12)
    assert (
        await setting.answered(NEXT.replace("height\n", "height\n        self.height = height\n"))
        == []
    )


async def test_one_that_the_user_types_along_stays() -> None:
    setting = Setting()
    half = NOW.replace("        self.width = width\n", "        self.width = width\n        self\n")
    setting.typist.change(setting.document, (2, 26), (2, 26), "\n        self")
    setting.typist.now_s += 3
    assert setting.document.text == half
    setting.cursor = Position(3, 12)
    (found,) = await setting.answered(NEXT)
    assert found.new_text == ".height = height"
    setting.type(3, 12, ".he")
    left = await setting.provider.next_edits(setting.document, Position(3, 15))
    assert left is not None
    assert texts(left) == ["ight = height"]
    setting.type(3, 15, "x")
    task = await setting.ask(Position(3, 16))
    await setting.engine.end("cancelled")
    assert await task == []


@data_cases()
async def test_the_gate_lets_through_what_the_model_is_sure_of(
    gate: str, likely: float, shown: bool
) -> None:
    setting = Setting(gate=gate)
    assert bool(await setting.answered(NEXT, likely)) is shown
    assert setting.provider.model is not None
    assert ("not sure" in setting.provider.model.reason) is not shown


REFUSED = {
    "an answer that was cut": (NEXT[: NEXT.index("    def area")], "length", "not finished"),
    "the same text": (NOW, "end", "leaves the text"),
    "blanks": (NOW.replace("width\n\n", "width\n\n\n"), "end", "blanks alone"),
    "the edit taken back": (TEXT, "end", "takes back|deletes what was"),
    "half of it taken back": (NOW.replace(", height)", ")"), "end", "takes back|deletes what was"),
    "no more syntax": (NOW.replace("= width\n", "= (width\n"), "end", "not parse|adds a name"),
    "a loop": (NOW.replace("= width\n", "= width\n" + 3 * "        x = 1\n"), "end", "repeats"),
    "words": ("I added the attribute for you.\n", "end", "little of the window"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_it_is_not_shown(name: str) -> None:
    answer, stopped_by, reason = REFUSED[name]
    setting = Setting(gate="off")
    task = await setting.ask()
    await setting.engine.write(answer)
    await setting.engine.end(stopped_by)
    assert await task == []
    assert setting.provider.model is not None
    assert any(part in setting.provider.model.reason for part in reason.split("|"))


async def test_a_model_that_answers_no_windows_is_not_asked_any_more_and_the_status_says_so() -> (
    None
):
    setting = Setting()
    assert setting.provider.model is not None
    for times in range(3):
        assert setting.provider.model.trouble == ""
        assert await setting.answered("Here is your code.\n") == []
        setting.cursor = setting.type(1, setting.cursor.column, "s")
        assert len(setting.engine.asked) == times + 1
    assert "redraft.nextEdits.format" in setting.provider.model.trouble
    assert await (await setting.ask()) == []
    assert len(setting.engine.asked) == 3


@pytest.mark.parametrize("count", range(5, 17))
def test_an_answer_that_takes_the_last_edit_back_is_in_the_models_format(count: int) -> None:
    before = [f"old_{n} = {n}" for n in range(count)]
    now = [f"renamed_{n} = value({n})" for n in range(count)]
    window = Window("a.py", "python", 0, tuple(now), (0, 0), original=tuple(before))
    with pytest.raises(TakenBack):
        read_answer("\n".join(before), window, FORMATS["redraft"], is_whole=True)
    with pytest.raises(NoWindow) as raised:
        read_answer("Here is your code.\n", window, FORMATS["redraft"], is_whole=True)
    assert not isinstance(raised.value, TakenBack)
    assert read_answer("\n".join(now), window, FORMATS["redraft"], is_whole=True).text


async def test_a_model_that_takes_edits_back_is_asked_again() -> None:
    text = "".join(f"old_{n}\n" for n in range(7))
    setting = Setting()
    setting.document = setting.typist.open(text)
    setting.typist.now_s += 9
    for line in range(7):
        setting.typist.now_s -= 3
        setting.cursor = setting.type(line, 0, "new_")
    for times in range(4):
        assert await setting.answered(text) == []
        assert len(setting.engine.asked) == times + 1
        setting.cursor = setting.type(6, setting.cursor.column, "s")
    assert setting.provider.model is not None
    assert setting.provider.model.trouble == ""


async def test_a_text_with_a_mark_of_the_format_is_not_sent() -> None:
    setting = Setting()
    setting.cursor = setting.type(2, 26, "  # <file_sep>")
    assert await (await setting.ask()) == []
    assert setting.engine.asked == []


async def test_it_is_not_asked_without_an_edit_nor_for_a_file_that_may_not_be_read() -> None:
    setting = Setting()
    other = setting.typist.open(TEXT, uri="file:///project/other.py")
    setting.typist.history.clear()
    found = await setting.provider.next_edits(other, Position(2, 0))
    assert found == []
    assert setting.engine.asked == []


async def test_it_is_asked_while_it_is_seen_whether_the_user_goes_on_and_shown_after_it() -> None:
    setting = Setting()
    setting.typist.now_s -= 3
    task = await setting.ask()
    assert len(setting.engine.asked) == 1
    await setting.engine.write(NEXT)
    await setting.engine.end()
    assert not task.done()
    setting.typist.now_s += 3
    assert texts(await task) == ["        self.height = height\n"]
    assert len(setting.engine.asked) == 1


async def test_the_model_is_asked_behind_each_key_once_next_edits_are_asked_for() -> None:
    setting = Setting()
    setting.type(1, setting.cursor.column, "s")
    await asyncio.sleep(2 * provider.AHEAD_S)
    assert setting.engine.asked == []
    await setting.answered(NOW)
    setting.cursor = setting.type(1, setting.cursor.column + 1, "x")
    setting.typist.now_s -= 3
    await setting.engine.wait_for(2)
    assert setting.engine.priorities == [EDIT, PREFETCH]
    task = await setting.ask()
    assert len(setting.engine.asked) == 2, "the request waits for what was begun ahead"
    await setting.engine.write(NEXT.replace("height)", "heightsx)"))
    await setting.engine.end()
    assert not task.done(), "the user may go on"
    setting.typist.now_s += 3
    assert texts(await task) == ["        self.height = height\n"]


async def test_a_key_stops_what_was_begun_ahead() -> None:
    setting = Setting()
    await setting.answered(NOW)
    setting.cursor = setting.type(1, setting.cursor.column, "x")
    await setting.engine.wait_for(2)
    await setting.engine.write(NEXT[:60])
    before = setting.engine.cancelled
    setting.cursor = setting.type(1, setting.cursor.column, "y")
    await setting.engine.wait_for_cancels(before + 1)
    await setting.engine.wait_for(3)
    assert "heightxy" in setting.engine.asked[-1].prediction
    await setting.engine.end("cancelled")


@pytest.mark.parametrize(("measured", "now"), [(0.001, 10.0), (0.001, None), (0.1, 0.01)])
def test_a_slow_machine_is_asked_for_a_smaller_window_at_the_cursor(
    measured: float, now: float | None
) -> None:
    """By what was measured of it, and by what its last prompts took."""

    async def asked(seconds: float, now: float | None = None) -> str:
        setting = Setting()
        pace = tuple(seconds * (n + 1) for n in range(64))
        if now is not None:
            assert setting.provider.model is not None
            rows = 5 * STEP
            result = JobResult("", [], 0, 0, 0.0, 5 * now, {}, "end", rows)
            setting.provider.model.results.append(result)
        setting.engine.status = replace(setting.engine.status, prompt_seconds=pace)
        setting.document = setting.typist.open(
            "".join(f"{n}, {'some words, ' * 4}\n" for n in range(60))
        )
        setting.typist.now_s += 9
        setting.cursor = setting.type(30, 2, "0")
        task = await setting.ask()
        window = setting.engine.asked[0].prediction
        await setting.engine.end("cancelled")
        await task
        return window

    as_measured = asyncio.run(asked(measured))
    other = asyncio.run(asked(10.0) if now is None else asked(measured, now))
    fast, slow = sorted((as_measured, other), key=len, reverse=True)
    assert fast.count("\n") == 21
    assert slow.count("\n") < 15
    assert slow in fast


async def test_what_the_history_settles_is_proposed_without_asking_the_model() -> None:
    setting = Setting()
    text = "def f(count):\n    return count + 1\n"
    document = setting.typist.open(text, uri="file:///project/rename.py")
    cursor = setting.typist.retype(document, 0, "count", "total")
    found = await setting.provider.next_edits(document, cursor)
    assert found is not None
    assert texts(found) == ["total"]
    assert setting.engine.asked == []


async def test_a_chain_that_syntax_settled_is_followed_by_nothing_until_the_next_key() -> None:
    setting = Setting()
    setting.document = setting.typist.open("def add(a):\n    return a\n\n\nadd(1)\nadd(2)\n")
    setting.typist.now_s += 9
    setting.cursor = setting.type(0, 7, "_up")
    for _ in range(2):
        found = await setting.provider.next_edits(setting.document, setting.cursor)
        assert found
        setting.typist.take(setting.document, found[0])
    assert setting.document.text.count("add_up") == 3
    setting.typist.now_s += 3
    assert await setting.provider.next_edits(setting.document, setting.cursor) == []
    assert setting.engine.asked == []
    setting.cursor = setting.type(1, 12, "b")
    task = await setting.ask()
    assert len(setting.engine.asked) == 1
    await setting.engine.end("cancelled")
    await task
