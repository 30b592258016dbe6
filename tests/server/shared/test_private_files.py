"""Files that their user alone may read: whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from operating_system.files import write_private


def test_a_file_is_replaced_and_readable_for_its_user_alone(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "kept.json"
    write_private(file, "é")
    file.chmod(0o644)
    write_private(file, b"\xff")
    assert file.read_bytes() == b"\xff"
    assert os.listdir(file.parent) == ["kept.json"]
    if os.name == "posix":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_file_that_cannot_be_replaced_leaves_nothing_beside_it(tmp_path: Path) -> None:
    in_the_way = tmp_path / "kept.json"
    in_the_way.mkdir()
    with pytest.raises(OSError, match=r"kept\.json"):
        write_private(in_the_way, "new")
    assert os.listdir(tmp_path) == ["kept.json"]
