"""Changes that were written before anything was run on them, typed key by key and taken by Tab
alone, in all files of the workspace: complete, or at least nothing that is not wanted."""

from __future__ import annotations

import asyncio
from itertools import product
from pathlib import Path

import pytest
from next_edit_cases import NextEditCase, next_edit_cases
from typist import Typist, carried_on, type_over

CASES = next_edit_cases("fresh")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_tab_alone_completes_it(case: NextEditCase, tmp_path: Path) -> None:
    assert carried_on(case, tmp_path) == case.wanted


@pytest.mark.parametrize("pauses_s", [*product((0.4, 3), repeat=4)], ids=str)
@pytest.mark.parametrize("case", [case for case in CASES if "closed" in case.name], ids=str)
def test_a_call_is_wrapped_however_long_one_pauses(
    case: NextEditCase, pauses_s: tuple[float, ...], tmp_path: Path
) -> None:
    assert carried_on(case, tmp_path, pauses_s) == case.after


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
