"""Changes that were written before anything was run on them, typed key by key and taken by Tab
alone, in all files of the workspace: complete, or at least nothing that is not wanted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from next_edit_cases import NextEditCase, next_edit_cases
from typist import Typist

from lsp_server.text.documents.document import Position

if TYPE_CHECKING:
    from lsp_server.text.documents.document import Document

CASES = next_edit_cases("fresh")


def type_over(typist: Typist, document: Document, line: int, old: str, new: str) -> Position:
    """Type ``new`` in place of ``old``, without what both begin or end with."""
    head = tail = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    column = document.lines[line].index(old) + head
    typed = new[head : len(new) - tail]
    typist.now_s += 3
    if head + tail < len(old):
        typist.change(document, (line, column), (line, column + len(old) - head - tail), "")
    for character in typed:
        typist.now_s += 0.1
        typist.change(document, (line, column), (line, column), character)
        line, column = (line + 1, 0) if character == "\n" else (line, column + 1)
    typist.now_s += 1
    return Position(line, column)


def carried_on(case: NextEditCase, folder: Path) -> dict[str, str]:
    """The files after the edits of a case, and after Tab as often as something is proposed."""
    for path, text in case.before.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    typist = Typist(str(folder))
    uri = (folder / case.path).as_uri()
    opened = {case.path: typist.open(case.before[case.path], case.language, uri)}
    cursor = Position(0, 0)
    for line, old, new in case.edits:
        cursor = type_over(typist, opened[case.path], line, old, new)
        typist.next_edits(opened[case.path], cursor)
    document = opened[case.path]
    for _ in range(100):
        found = [one for one in typist.next_edits(document, cursor) if one.new_text is not None]
        if not found:
            break
        path = Path(found[0].uri.removeprefix("file://")).relative_to(folder).as_posix()
        if path not in opened:
            # The editor opens the file that the key leads to.
            opened[path] = typist.open(case.before[path], case.language, found[0].uri)
        document, cursor = opened[path], found[0].region.start
        typist.now_s += 1
        typist.take(document, found[0])
    else:
        raise AssertionError("next edits come without end")
    return {**case.before, **{path: one.text for path, one in opened.items()}}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_tab_alone_completes_it(case: NextEditCase, tmp_path: Path) -> None:
    assert carried_on(case, tmp_path) == case.after


def test_places_in_other_files_alone_are_news_to_the_editor_which_closes_its_menu(
    tmp_path: Path,
) -> None:
    (tmp_path / "use.py").write_text("from core import scale\n\nscale(1)\n", "utf-8")
    typist = Typist(str(tmp_path))
    core = typist.open("def scale(size):\n    return size\n", uri=(tmp_path / "core.py").as_uri())
    assert typist.next_edits(core, type_over(typist, core, 0, "scale", "resize"))
    assert asyncio.run(typist.provider.settled())


def test_what_a_package_hands_on_is_followed_beside_many_importers(tmp_path: Path) -> None:
    files = {
        "pkg/core.py": "def scale(size):\n    return size\n",
        **{f"a{number}.py": "from pkg.core import scale\n\nscale(1)\n" for number in range(9)},
        "pkg/__init__.py": "from pkg.core import scale\n",
        "use.py": "from pkg import scale\n\nscale(2)\n",
    }
    case = NextEditCase("fresh", "python", "", files, ((0, "scale", "resize"),), None)
    renamed = {path: text.replace("scale", "resize") for path, text in files.items()}
    assert carried_on(case, tmp_path) == renamed
