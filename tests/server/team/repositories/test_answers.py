"""What the user answered about a workspace and a server is kept, and read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsp_server.editor.remote.sharing.sharing_answers import SharingAnswers

HERE, THERE = "https://here.example", "https://there.example"


def test_answers_are_kept_by_server_and_folder(tmp_path: Path) -> None:
    file, work = tmp_path / "state" / "answers.json", str(tmp_path)
    answers = SharingAnswers(file)
    assert answers.may(HERE, work) is None
    answers.allow(HERE, work)
    assert answers.repository(HERE, work) == ""
    answers.allow(HERE, work, "0" * 32)
    answers.refuse(HERE, str(tmp_path / "other"))
    again = SharingAnswers(file)
    assert again.may(HERE, work) is True
    assert again.repository(HERE, work) == "0" * 32
    assert again.may(HERE, str(tmp_path / "other")) is False
    assert again.may(THERE, work) is None
    assert file.stat().st_mode & 0o777 == 0o600


def test_what_another_process_wrote_counts(tmp_path: Path) -> None:
    file, work = tmp_path / "answers.json", str(tmp_path)
    daemon, command = SharingAnswers(file), SharingAnswers(file)
    daemon.allow(HERE, work, "0" * 32)
    command.refuse_repository(HERE, "0" * 32)
    assert daemon.may(HERE, work) is False
    # The daemon finds the repository gone: the user need not be asked.
    daemon.ended(HERE, work, "0" * 32)
    assert daemon.may(HERE, work) is False
    daemon.allow(HERE, work, "1" * 32)
    daemon.ended(HERE, work, "1" * 32)
    assert daemon.may(HERE, work) is None


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 1}'])
def test_a_damaged_file_holds_no_answer(tmp_path: Path, text: str) -> None:
    file = tmp_path / "answers.json"
    file.write_text(text)
    assert SharingAnswers(file).may(HERE, str(tmp_path)) is None
