"""``redraft keys`` and ``serve-http`` as commands: files, refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
from text_cases import data_beside, data_cases

pytest.importorskip("starlette", reason="the extra server is not installed")

from lsp_server.commands.cli.main import main
from lsp_server.team.http_server.keys import Keys


def test_a_key_is_added_listed_and_revoked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "keys")
    assert main(["keys", "--keys", file, "add", "ann"]) == 0
    key = capsys.readouterr().out.strip()
    assert main(["keys", "add", "ben", "--keys", file]) == 0
    capsys.readouterr()
    assert Keys(Path(file)).holder(key) == "ann"
    assert main(["keys", "--keys", file, "list"]) == 0
    assert capsys.readouterr().out == "ann\nben\n"
    assert main(["keys", "--keys", file, "revoke", "ann"]) == 0
    assert Keys(Path(file)).holder(key) is None
    assert main(["keys", "--keys", file, "revoke", "ann"]) == 1
    assert "ann has no key" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", "a b", "a/b", "#x"])
def test_a_name_that_is_none_gets_no_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    file = tmp_path / "keys"
    assert main(["keys", "--keys", str(file), "add", name]) == 1
    assert "cannot have a key" in capsys.readouterr().err
    assert not file.exists()


@data_cases()
def test_wrong_options_of_the_server_are_told_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("lsp_server.shared.processes.log.start_log", lambda _name: None)
    assert main(["serve-http", *options]) == 1
    assert message in capsys.readouterr().err.splitlines()[-1]


DATA = data_beside(__file__)
NO_PORTS = DATA["NO_PORTS"]


@pytest.mark.parametrize("port", NO_PORTS)
@pytest.mark.parametrize("command", ["serve-http", "deploy"])
def test_what_is_no_port_is_told_in_a_line(
    command: str, port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, f"--port={port}"])
    assert ended.value.code == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert "argument --port" in last
    assert "is not a port; give 0 to 65535" in last


@pytest.mark.parametrize("address", [*(f"127.0.0.1:{port}" for port in NO_PORTS), "[::1]:x", "9"])
def test_what_is_no_address_of_metrics_is_told_in_a_line(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve-http", "--admin", address]) == 1
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "is not an address; give HOST:PORT" in line
