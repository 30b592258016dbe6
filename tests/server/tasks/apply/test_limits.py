"""Edits that no agent means: each is refused before it takes long. Large ones are made in a
process, which ends with the client that asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from lsp_server.editor.agents import tools
from lsp_server.editor.agents.agent_files import AgentFiles
from lsp_server.tasks.apply import bounded
from lsp_server.tasks.apply.bounded import LARGE, BoundedEdits
from lsp_server.tasks.apply.edit_text import apply_text
from lsp_server.tasks.apply.refusals import AmbiguousSnippet, Merge

FILE = "".join(f"def f{n}(a):\n    x = a + {n}\n    return x\n\n" for n in range(2_000))
BLOCK = "<<<<<<< SEARCH\n    x = a + {}\n=======\n    x = a - {}\n>>>>>>> REPLACE\n"
HUNK = "@@\n def f{0}(a):\n-    x = a + {0}\n+    x = a - {0}\n"
EQUAL = "a = 1\n"
REFUSED: dict[str, tuple[str, str, str]] = {
    "a line of 5 MB": (FILE, "x = '" + "a " * 2_500_000 + "'\n", "line 1 of the snippet is too"),
    "blanks": (FILE, f"#{' ' * 5_000_000}x\n", "line 1 of the snippet is too long"),
    "blocks": (FILE, "".join(BLOCK.format(n, n) for n in range(10_000)), "10000 changes"),
    "hunks": (FILE, "".join(HUNK.format(n) for n in range(10_000)), "10000 changes"),
    "equal lines": (EQUAL * 200_000, "a = 1\nb = 2\na = 1\n", "fits more than"),
    "equal lines that are searched for": (
        EQUAL * 200_000,
        f"<<<<<<< SEARCH\n{EQUAL * 9_000}=======\nb = 2\n>>>>>>> REPLACE\n",
        "stands all over the file",
    ),
    "place holders among equal lines": (
        EQUAL * 3_000,
        "# ...\n".join(["a = 1\nb = 2\n"] * 190),
        "fits more than",
    ),
    "comments that remove": (FILE, "# remove f1\n# ...\n" * 10_000, "too many to compare"),
    "removed names that are none": (
        FILE,
        "".join(f"# removed q{n} z{n}\n" for n in range(3_000)),
        "too many to compare",
    ),
    "fences": (FILE, "```py\nx = 1\n```\n" * 30_000, "too many to compare"),
    "marks of hunks": (FILE, "@@\n" * 100_000, "too many to compare"),
    "empty lines": (FILE, "\n" * 200_000 + "x = 1\n", "too many to compare"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_too_much_is_refused(case: str) -> None:
    file, edit, said = REFUSED[case]
    with pytest.raises(AmbiguousSnippet, match=said):
        apply_text(file, edit, "python")


def test_a_whole_file_of_many_lines_is_taken() -> None:
    edit = FILE.replace("a + 777\n", "a - 777\n")
    assert apply_text(FILE, edit, "python").text == edit


def bounded_edits(work: Callable[[BoundedEdits], object]) -> None:
    async def run() -> None:
        edits = BoundedEdits()
        try:
            await work(edits)  # type: ignore[misc]
        finally:
            await edits.close()

    asyncio.run(run())


def sleeping() -> Merge:
    time.sleep(600)
    return Merge("")


def test_a_large_edit_is_made_in_a_process_and_ends_with_its_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A busy machine is slow: what is asked here hangs on no speed.
    monkeypatch.setattr(bounded, "LONGEST_S", 60.0)

    async def work(edits: BoundedEdits) -> None:
        edit = FILE.replace("a + 777\n", "a - 777\n")
        merge = await edits.merged(len(FILE) + len(edit), apply_text, FILE, edit, "python")
        assert merge == Merge(edit)
        with pytest.raises(AmbiguousSnippet, match="old and new text are the same"):
            await edits.merged(LARGE, apply_text, FILE, BLOCK.replace("-", "+").format(1, 1))
        slow = asyncio.ensure_future(edits.merged(LARGE, sleeping))
        next_one = asyncio.ensure_future(edits.merged(LARGE, apply_text, FILE, edit, "python"))
        before = edits._process.pid
        await asyncio.sleep(0)
        slow.cancel()
        assert (await next_one) == Merge(edit)
        assert before is not None
        assert edits._process.pid != before

    bounded_edits(work)


def test_a_large_edit_that_takes_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "LONGEST_S", 0.2)

    async def work(edits: BoundedEdits) -> None:
        with pytest.raises(AmbiguousSnippet, match=r"the edit takes more than 0\.2 s"):
            await edits.merged(LARGE, sleeping)

    bounded_edits(work)


def begun(started: Path, *_: object) -> None:
    started.touch()
    sleeping()


class NoDaemon:
    """Knows of no unsaved text."""

    async def request(self, *_: object) -> None:
        """Answer that there is none."""


def test_a_large_edit_of_an_agent_ends_with_its_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "LONGEST_S", 600.0)
    monkeypatch.setattr(tools, "apply_update", partial(begun, started := tmp_path / "started"))
    (tmp_path / "long.py").write_text(FILE)
    files = AgentFiles([tmp_path])
    agent = tools.AgentTools(files, NoDaemon())  # type: ignore[arg-type]
    edit = tools.ApplyEdit(path="long.py", old_string="y", new_string="z")

    async def leave() -> None:
        call = asyncio.ensure_future(agent.apply_edit(edit, files))
        while not (started.exists() or call.done()):
            await asyncio.sleep(0.01)
        pid = agent._edits._process.pid
        assert pid is not None
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        while psutil.pid_exists(pid):
            await asyncio.sleep(0.01)
        await agent._edits.close()

    asyncio.run(leave())
    assert (tmp_path / "long.py").read_text() == FILE
