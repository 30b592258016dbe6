"""Paths with credentials are known by the whole path; those of projects are let through."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from planted_secrets import SECRET_PATHS, innocent_paths
from text_cases import data_cases

from repo_index.files import FileRules
from repo_index.secret_paths import secret_path


def test_there_are_sixty_places_and_all_are_known() -> None:
    assert len(SECRET_PATHS) >= 60
    paths = [path.format(work="/srv/shop") for path in SECRET_PATHS]
    assert [path for path in paths if not secret_path(path)] == []
    assert [path for path in paths if not secret_path(path.replace("/", "\\"))] == []


def test_of_three_hundred_innocent_paths_at_most_one_in_a_hundred_is_held_back() -> None:
    paths = innocent_paths()
    assert len(set(paths)) == 300
    held = {path: reason for path in paths if (reason := secret_path(path))}
    assert len(held) <= 3, held


@pytest.mark.parametrize("folder", [".aws", ".azure", ".kube", ".docker", ".config/gh"])
def test_a_folder_counts_at_the_home_alone(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "me"
    home.mkdir()
    (tmp_path / "link").symlink_to(home)
    monkeypatch.setenv("HOME" if os.name != "nt" else "USERPROFILE", str(tmp_path / "link"))
    assert secret_path(f"{tmp_path}/link/{folder}/a.txt")
    assert secret_path(f"{home}/{folder}/a.txt")
    assert not secret_path(f"{home}/project/{folder}/a.txt")
    assert not secret_path(f"{tmp_path}/{folder}/a.txt")
    assert not secret_path(f"{home}/{folder}-notes/a.txt".replace(".config/", "config/"))


def test_the_rules_of_a_workspace_look_at_the_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (".aws/config", ".aws/task-definition.json", "shop/.aws/task-definition.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert [path for path, _ in FileRules(tmp_path).walk()] == ["shop/.aws/task-definition.json"]
    assert [path for path, _ in FileRules(tmp_path / "shop").walk()] == [
        ".aws/task-definition.json"
    ]
    assert "secret" in FileRules(tmp_path).excluded(".aws/config")


@data_cases()
def test_what_ignore_files_leave_out_is_known_before_there_is_a_file(
    tmp_path: Path, path: str, reason: str
) -> None:
    (tmp_path / "node_modules").mkdir()
    (tmp_path / ".gitignore").write_text("build/\n*.tmp\n!kept.tmp\n")
    found = FileRules(tmp_path).ignored(path)
    assert reason in found
    assert bool(found) is bool(reason)
