"""Places in files that are not open: searched by another process, found again when the file was
written meanwhile, or let go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from typist import Typist

from lsp_server.shared.errors import WorkTakesTooLong
from lsp_server.shared.processes.function_process import FunctionProcess
from lsp_server.shared.settings import NextEditSettings
from lsp_server.text.documents.document import Document, Position, split_lines

USER = "from cart import total\n\n\ndef show():\n    print(total([]))\n\n\nshow()\n"
RENAMED = USER.replace("total", "cost")


def renamed(folder: Path) -> tuple[Typist, Document, Position]:
    (folder / "shop.py").write_text(USER)
    typist = Typist(str(folder))
    document = typist.open("def total(items):\n    return 1\n", uri=(folder / "cart.py").as_uri())
    cursor = typist.retype(document, 0, "total", "cost")
    assert len(typist.next_edits(document, cursor)) == 2
    return typist, document, cursor


CHANGES = {
    "lines above": ("# one\n# two\n" + USER, 2),
    "lines below": (USER + "show()\n", 2),
    "lines above and below": ("# one\n" + USER + "# end\n", 2),
    "lines between": (USER.replace("def show", "x = 1\n\n\ndef show"), 2),
    "a line above is gone": (USER.replace("\n\n\ndef", "\ndef"), 2),
    "another line": (USER.replace("show()\n", "show(1)\n"), 2),
    "the import": (USER.replace("import total", "import total as t"), 1),
    "the call": (USER.replace("total([])", "total([1])"), 1),
    "both": (USER.replace("import total", "import rest, total").replace("[]", "()"), 0),
    "all": ("x = 1\n", 0),
    "nothing is left": ("", 0),
    "renamed already": (RENAMED, 0),
    "the call comes twice": (USER + "    print(total([]))\n", 2),
    "the same text again": (USER, 2),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("opens", [False, True])
def test_what_stands_there_still_is_what_changes(tmp_path: Path, name: str, opens: bool) -> None:
    text, most = CHANGES[name]
    typist, document, cursor = renamed(tmp_path)
    file = tmp_path / "shop.py"
    file.write_text(text)
    if opens:
        document, cursor = typist.open(text, uri=file.as_uri()), Position(0, 0)
    found = [one for one in typist.next_edits(document, cursor) if one.uri == file.as_uri()]
    assert len(found) <= most
    assert len(found) == most or name == "the call comes twice"
    lines = split_lines(text)
    for one in found:
        start, end = one.region.start, one.region.end
        assert (one.old_text, one.new_text) == ("total", "cost")
        assert lines[start.line][start.column : end.column] == "total"


def test_a_file_that_is_gone_has_no_next_edits(tmp_path: Path) -> None:
    typist, document, cursor = renamed(tmp_path)
    (tmp_path / "shop.py").unlink()
    assert typist.next_edits(document, cursor) == []


def test_a_file_that_is_no_text_any_more_has_none(tmp_path: Path) -> None:
    typist, document, cursor = renamed(tmp_path)
    (tmp_path / "shop.py").write_bytes(b"\xff\xfe\x00\xd8total")
    assert typist.next_edits(document, cursor) == []


class TooSlowOnce(FunctionProcess):
    """Gives its first search up."""

    searches = 0

    async def call(self, function: Any, *arguments: Any, **named: Any) -> Any:
        if getattr(function, "__name__", "") == "edits":
            self.searches += 1
            if self.searches == 1:
                raise WorkTakesTooLong("more than 10 s and was given up")
        return await super().call(function, *arguments, **named)


@pytest.fixture
async def process() -> AsyncIterator[TooSlowOnce]:
    made = TooSlowOnce()
    yield made
    await made.close()


async def test_a_search_that_was_given_up_is_made_again_and_loads_no_compiled_code(
    tmp_path: Path, process: TooSlowOnce
) -> None:
    (tmp_path / "shop.py").write_text(USER)
    typist = Typist(str(tmp_path))
    typist.provider._functions = process
    text, uri = "def total(items):\n    return 1\n", (tmp_path / "cart.py").as_uri()
    document = typist.open(text, uri=uri)
    cursor = typist.retype(document, 0, "total", "cost")
    found = await typist.provider.next_edits(document, cursor)
    assert found is not None
    assert [one.new_text for one in found] == ["cost", "cost"]
    assert process.searches == 2
    assert typist.provider.condition(NextEditSettings())["reason"] == ""
    assert not await process.call(eval, "'numba' in __import__('sys').modules")


async def test_the_process_of_searches_is_there_from_the_first_key_on(
    process: TooSlowOnce,
) -> None:
    typist = Typist()
    typist.provider._functions = process
    document = typist.open("x = 1\n")
    await typist.provider.next_edits(document, Position(0, 0))
    assert process.pid is None
    typist.change(document, (0, 0), (0, 0), "#")

    async def started() -> None:
        while process.pid is None:
            await asyncio.sleep(0.01)

    await asyncio.wait_for(started(), 60)
