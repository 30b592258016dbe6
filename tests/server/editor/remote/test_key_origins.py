"""A key goes to the origin that it was given for, and to no other."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from lsp_server.editor.remote import key_origins
from lsp_server.editor.remote.address import ServerAddress
from lsp_server.editor.remote.key_origins import check_origin, origins_file
from lsp_server.shared.errors import ServerUnavailable


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "state" / "server-keys.json"
    monkeypatch.setattr(key_origins, "origins_file", lambda: made)
    return made


def at(url: str) -> ServerAddress:
    return ServerAddress.of(url)


def test_a_key_belongs_to_the_first_origin_that_it_was_used_for(file: Path) -> None:
    check_origin("plum-key", at("https://mine.example.com/team"))
    check_origin("plum-key", at("https://mine.example.com"))
    for other in ("https://theirs.example.com", "https://mine.example.com:8443", "http://[::1]"):
        with pytest.raises(
            ServerUnavailable, match=r"belongs to https://mine\.example\.com"
        ) as told:
            check_origin("plum-key", at(other))
        assert "plum-key" not in str(told.value)
    check_origin("another", at("https://theirs.example.com"))
    assert b"plum-key" not in file.read_bytes()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_servers_of_this_machine_get_no_claim_to_a_key(file: Path) -> None:
    check_origin("none", at("http://localhost:11434"))
    check_origin("none", at("http://localhost:8080"))
    check_origin("", at("https://mine.example.com"))
    assert not file.exists()
    check_origin("none", at("https://mine.example.com"))


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"salt": "zz", "origins": {}}', '{"salt": 1}'])
def test_a_damaged_file_is_replaced(file: Path, damage: str) -> None:
    file.parent.mkdir()
    file.write_text(damage)
    check_origin("plum-key", at("https://mine.example.com"))
    with pytest.raises(ServerUnavailable):
        check_origin("plum-key", at("https://theirs.example.com"))


def test_the_file_stands_in_the_users_state_folder() -> None:
    assert origins_file().name == "server-keys.json"
