"""Files inside a folder: what leads out of it is not opened, and what changed is not replaced."""

from __future__ import annotations

import os
import stat
from contextlib import closing
from pathlib import Path

import pytest
from text_cases import data_beside

from operating_system.files_inside import FileChanged, Replacement, open_inside, read_inside

DATA = data_beside(__file__)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a file below two folders, and a file beside the folder."""
    (tmp_path / "outside.txt").write_text("theirs")
    inside = tmp_path / "root" / "a" / "b"
    inside.mkdir(parents=True)
    (inside / "file.txt").write_text("ours")
    return tmp_path / "root"


def names(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "a" / "b").iterdir())


LEADING_OUT = DATA["LEADING_OUT"]


@pytest.mark.parametrize("case", LEADING_OUT)
def test_no_link_is_followed(root: Path, case: str) -> None:
    path, link, target = LEADING_OUT[case]
    (root / link).symlink_to(target)
    with pytest.raises(OSError, match=r".+"):
        os.close(open_inside(root, path))
    with pytest.raises(OSError, match=r".+"):
        read_inside(root, path, 100)


def test_pipes_and_folders_are_no_files(root: Path) -> None:
    os.mkfifo(root / "a" / "pipe")
    for path in ("a/pipe", "a/b"):
        with pytest.raises(OSError, match=r".+"):
            read_inside(root, path, 100)


def test_a_file_is_replaced_with_its_mode(root: Path) -> None:
    (root / "a/b/file.txt").chmod(0o741)
    known = read_inside(root, "a/b/file.txt", 100)
    with closing(Replacement(root, "a/b/file.txt", known, b"new")) as replacement:
        assert (root / "a/b/file.txt").read_text() == "ours"
        replacement.check()
        replacement.commit()
    assert (root / "a/b/file.txt").read_text() == "new"
    assert stat.S_IMODE((root / "a/b/file.txt").stat().st_mode) == 0o741
    assert names(root) == ["file.txt"]


def test_what_was_replaced_can_be_had_again(root: Path) -> None:
    known = read_inside(root, "a/b/file.txt", 100)
    with closing(Replacement(root, "a/b/file.txt", known, b"new")) as replacement:
        replacement.commit()
        replacement.undo()
    assert (root / "a/b/file.txt").read_text() == "ours"
    assert names(root) == ["file.txt"]


def test_nothing_is_left_of_what_was_not_committed(root: Path) -> None:
    known = read_inside(root, "a/b/file.txt", 100)
    with closing(Replacement(root, "a/b/file.txt", known, b"new")):
        assert len(names(root)) == 2
    assert names(root) == ["file.txt"]


def written_again(file: Path) -> None:
    file.write_text("OURS")


def longer(file: Path) -> None:
    file.write_text("ours and more")


def another_of_the_same_text(file: Path) -> None:
    other = file.with_name("other.txt")
    other.write_text("ours")
    other.replace(file)


def gone(file: Path) -> None:
    file.unlink()


def a_link_instead(file: Path) -> None:
    file.unlink()
    file.symlink_to("../../../outside.txt")


@pytest.mark.parametrize(
    "change", [written_again, longer, another_of_the_same_text, gone, a_link_instead]
)
def test_a_file_that_changed_is_told(root: Path, change) -> None:
    known = read_inside(root, "a/b/file.txt", 100)
    with closing(Replacement(root, "a/b/file.txt", known, b"new")) as replacement:
        change(root / "a/b/file.txt")
        with pytest.raises(OSError, match=r".+") as raised:
            replacement.check()
    assert isinstance(raised.value, FileChanged) == (change not in (gone, a_link_instead))
    assert (root.parent / "outside.txt").read_text() == "theirs"


def test_a_folder_that_is_moved_is_still_the_one_that_was_opened(root: Path) -> None:
    """The name of a held folder may lead elsewhere by now; what is written lies in the folder."""
    known = read_inside(root, "a/b/file.txt", 100)
    with closing(Replacement(root, "a/b/file.txt", known, b"new")) as replacement:
        (root / "a").rename(root / "moved")
        (root / "a").symlink_to("..")
        replacement.commit()
    assert (root / "moved/b/file.txt").read_text() == "new"
    assert (root.parent / "outside.txt").read_text() == "theirs"
