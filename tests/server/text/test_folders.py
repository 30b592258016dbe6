"""Where documents stand: in folders that are opened through links, beside them, and in none."""

from __future__ import annotations

from pathlib import Path

import pytest
from text_cases import data_cases

from lsp_server.text.documents.workspace_folders import Folders


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """``real/project`` with a file, a link to it, a link around it, and a link inside."""
    project = tmp_path / "real" / "project"
    (project / "src").mkdir(parents=True)
    (project / "src" / "a.py").write_text("")
    (tmp_path / "link").symlink_to(project)
    (tmp_path / "outer").symlink_to(tmp_path / "real")
    (tmp_path / "again").symlink_to(tmp_path / "link")
    (project / "inside").symlink_to(project / "src")
    (tmp_path / "elsewhere").mkdir()
    (project / "away").symlink_to(tmp_path / "elsewhere")
    return tmp_path


@data_cases()
def test_links_between_folder_and_document(disk: Path, root: str, document: str, path: str) -> None:
    folders = Folders()
    folder = folders.add((disk / root).as_uri())
    place = folders.place((disk / document).as_uri())
    assert (place.folder, place.path) == (folder, path)
    assert place.absolute == str(disk / document)


@pytest.mark.parametrize("document", ["elsewhere/b.py", "real/other.py", "real/project-2/a.py"])
def test_documents_outside_stay_outside(disk: Path, document: str) -> None:
    folders = Folders()
    folders.add((disk / "link").as_uri())
    assert folders.place((disk / document).as_uri()).folder == ""


def test_the_innermost_folder_counts_through_links_too(disk: Path) -> None:
    folders = Folders()
    folders.add((disk / "outer").as_uri())
    inner = folders.add((disk / "link").as_uri())
    place = folders.place((disk / "real" / "project" / "src" / "a.py").as_uri())
    assert (place.folder, place.path) == (inner, "src/a.py")
    folders.remove((disk / "link").as_uri())
    place = folders.place((disk / "real" / "project" / "src" / "a.py").as_uri())
    assert (place.folder, place.path) == (str(disk / "outer"), "project/src/a.py")


def test_links_in_a_circle_are_no_place(disk: Path) -> None:
    (disk / "circle").symlink_to(disk / "circle")
    folders = Folders()
    folders.add((disk / "link").as_uri())
    assert folders.place((disk / "circle" / "a.py").as_uri()).folder == ""
