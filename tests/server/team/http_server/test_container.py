"""A client in a container and the server on its host: what runtimes put into containers is there,
mounted where only the client sees it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from served import KEY, Served

from lsp_server.editor.remote.address import ServerAddress
from lsp_server.shared.errors import ModelUnavailable
from operating_system import system

NAME = "host.docker.internal"
ENTER = 'mount --bind "$0" /etc/hosts && mount -t tmpfs none /run && touch /run/.containerenv'


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes this process think that it is in a container; its table of hosts."""
    (tmp_path / "mark").touch()
    monkeypatch.setattr(system, "MARKS", (tmp_path / "absent", tmp_path / "mark"))
    monkeypatch.setattr(system, "KNOWN_HOSTS", tmp_path / "hosts")
    (tmp_path / "hosts").write_text(f"127.0.0.1 localhost\n172.17.0.1\tother {NAME}\n")
    return tmp_path / "hosts"


def test_the_host_of_a_container_needs_no_encryption(container: Path) -> None:
    assert ServerAddress.of(f"http://{NAME}:8017/v1").is_local
    assert ServerAddress.of(f"http://{NAME.upper()}:8017").is_local
    with pytest.raises(ModelUnavailable, match="another machine"):
        ServerAddress.of("http://other:8017")


@pytest.mark.parametrize("table", ["", f"# 172.17.0.1 {NAME}\n", f"172.17.0.1 my-{NAME}\n", None])
def test_a_name_that_a_network_might_answer_for_is_refused(
    container: Path, table: str | None
) -> None:
    container.unlink() if table is None else container.write_text(table)
    with pytest.raises(ModelUnavailable) as raised:
        ServerAddress.of(f"http://{NAME}:8017")
    assert raised.value.remedy == f"start the container with --add-host={NAME}:host-gateway"
    assert not ServerAddress.of(f"https://{NAME}:8017").is_local


def test_outside_of_a_container_the_name_is_refused(
    container: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "MARKS", ())
    with pytest.raises(ModelUnavailable, match="not known here"):
        ServerAddress.of(f"http://{NAME}:8017")


def in_container(hosts: Path, home: Path, url: str) -> str:
    """What ``redraft doctor`` says there."""
    check = [sys.executable, "-m", "lsp_server", "doctor", "--server", url]
    environment = {**os.environ, "REDRAFT_SERVER_KEY": KEY, "HOME": str(home)}
    for name in [one for one in environment if one.startswith("XDG_")]:
        del environment[name]
    ran = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f'{ENTER} && exec "$@"', str(hosts), *check],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return ran.stdout + ran.stderr


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or shutil.which("unshare") is None,
    reason="needs root, for a table of hosts of its own",
)
def test_a_client_in_a_container_reaches_the_server_on_its_host(
    server: Served, tmp_path: Path
) -> None:
    port = urlsplit(server.url).port
    hosts = tmp_path / "hosts"
    hosts.write_text(f"127.0.0.1 localhost {NAME}\n")
    answer = in_container(hosts, tmp_path, f"http://{NAME}:{port}")
    assert f"http://{NAME}:{port} takes the key" in " ".join(answer.split())
    hosts.write_text("127.0.0.1 localhost\n")
    answer = in_container(hosts, tmp_path, f"http://{NAME}:{port}")
    assert f"--add-host={NAME}:host-gateway" in answer
