"""What the prompts of one key after another begin with is computed once, whoever types on."""

from __future__ import annotations

import asyncio
import random
from typing import Any, cast

import pytest
from engine_stand_in import EngineStandIn

from lsp_server.editor.next_edits.prompt_head import LEAST_CHARACTERS, PromptHead, common_pieces
from lsp_server.editor.next_edits.prompts import Piece
from lsp_server.engine.client import EngineClient
from lsp_server.shared.contract.jobs import PREFETCH, GenerateJob
from lsp_server.shared.errors import EngineUnavailable

MARK: Piece = ("<file_sep>", False)
HEAD = "".join(f"line {number}\n" for number in range(LEAST_CHARACTERS // 6))


def job(*pieces: Piece, path: str = "a.py") -> GenerateJob:
    return GenerateJob("/w", path, pieces=list(pieces), prediction="x", rewrites=[])


class Typing:
    """Prompts asked for one after another."""

    def __init__(self) -> None:
        self.engine = EngineStandIn()
        self.head = PromptHead("one")
        self.waiting: list[asyncio.Task[None]] = []

    async def key(self, of: GenerateJob) -> asyncio.Task[None]:
        """A key ends the wait for the last prompt, and asks for the next one."""
        for task in self.waiting:
            task.cancel()
        wanted = self.head.computed(cast(EngineClient, self.engine), of, PREFETCH)
        self.waiting = [asyncio.create_task(wanted)]
        for _ in range(3):
            await asyncio.sleep(0)
        return self.waiting[0]

    @property
    def computed(self) -> list[Any]:
        return [one.job.pieces for one in self.engine.prefills]


async def test_a_key_does_not_end_what_the_next_prompt_begins_with() -> None:
    one = Typing()
    assert (await one.key(job(MARK, (f"{HEAD}def a", True)))).done(), "nothing is known yet"
    assert not (await one.key(job(MARK, (f"{HEAD}def ab", True)))).done()
    last = await one.key(job(MARK, (f"{HEAD}def abc", True)))
    assert one.computed == [[MARK, (HEAD, True)]]
    assert not one.engine.cancelled_prefills
    assert not last.done()
    one.engine.prefills[0].end()
    await last
    assert (await one.key(job(MARK, (f"{HEAD}def abcd", True)))).done(), "it is computed"
    assert len(one.computed) == 1


async def test_another_head_takes_its_place() -> None:
    one = Typing()
    for text in (f"{HEAD}a\nb", f"{HEAD}a\nc", f"{HEAD}d\nc"):
        await one.key(job((text, True)))
    assert one.computed == [[(f"{HEAD}a\n", True)], [(HEAD, True)]]
    assert [each.cancelled for each in one.engine.prefills] == [True, False]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (job((f"{HEAD}a", True)), job((f"{HEAD}b", True), path="b.py")),
        (job((f"{HEAD[:100]}\na", True)), job((f"{HEAD[:100]}\nb", True))),
        (job((HEAD, True)), job((HEAD, False))),
    ],
    ids=["another file", "a short head", "what was a part of the format"],
)
async def test_nothing_is_computed_ahead(first: GenerateJob, second: GenerateJob) -> None:
    one = Typing()
    await one.key(first)
    assert (await one.key(second)).done()
    assert not one.computed


async def test_whoever_asks_goes_on_where_the_head_fails() -> None:
    one = Typing()
    await one.key(job((f"{HEAD}a", True)))
    waiting = await one.key(job((f"{HEAD}b", True)))
    one.engine.calls.fail_all(EngineUnavailable("it died"))
    await waiting


def test_both_prompts_begin_with_what_they_have_in_common() -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)

    def pieces() -> list[Piece]:
        return [
            ("".join(rng.choices("ab\n", k=rng.randint(1, 6))), rng.random() < 0.6)
            for _ in range(rng.randint(0, 4))
        ]

    for _ in range(2000):
        one, other = pieces(), pieces()
        if rng.random() < 0.7:
            other = [*one[: rng.randint(0, len(one))], *other]
        found = common_pieces(one, other)
        assert found == common_pieces(other, one)
        *whole, last = found or [("", True)]
        for each in (one, other):
            assert each[: len(whole)] == whole
            assert not found or each[len(whole)][0].startswith(last[0])
            assert not found or each[len(whole)][1] == last[1]
        count = len(found)
        if found and not (one[:count] == other[:count] == found):
            assert last[0].endswith("\n"), (one, other)
