"""What the processes of a cluster are told by their environment."""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from lsp_server.commands.cli import deploy
from lsp_server.shared.errors import DeployError
from lsp_server.team.ray_serve.environment import (
    EVERYWHERE,
    HAPROXY,
    end_haproxy,
    haproxy_files,
    own_haproxy,
    use,
)

PAGE = Path(__file__).resolve().parents[4] / "deploy" / "README.md"
MOST_SOCKET_PATH = 107
NODE_ID_CHARACTERS = 56


def test_two_clusters_of_a_machine_share_no_port_and_no_file(tmp_path):
    one, other = own_haproxy(tmp_path / "one"), own_haproxy(tmp_path / "other")
    same = {name for name in one if one[name] == other[name]}
    assert same == HAPROXY.keys()
    ports = [value for name, value in one.items() if name.endswith("_PORT")]
    assert len(set(ports)) == len(ports) == 3


def test_the_paths_of_sockets_are_short_enough():
    # Of the node and of HAProxy's own, while it opens one.
    more = NODE_ID_CHARACTERS + len("/.12345.tmp")
    for name, value in own_haproxy(Path("/tmp/redraft-12345678")).items():
        if name.endswith("_SOCKET_PATH"):
            assert len(value) + more <= MOST_SOCKET_PATH


def test_what_the_user_has_set_stays(monkeypatch):
    monkeypatch.setenv("REDRAFT_TEST_SET", "mine")
    monkeypatch.delenv("REDRAFT_TEST_UNSET", raising=False)
    use({"REDRAFT_TEST_SET": "ours", "REDRAFT_TEST_UNSET": "ours"})
    assert os.environ.pop("REDRAFT_TEST_UNSET") == "ours"
    assert os.environ["REDRAFT_TEST_SET"] == "mine"


def test_the_page_for_clusters_has_all_of_it():
    page = PAGE.read_text("utf-8")
    for name, value in {**EVERYWHERE, **HAPROXY}.items():
        assert f"{name}={value}" in page
    for name, value in haproxy_files("$HOME/haproxy").items():
        assert f'{name}="{value}"' in page


def test_https_is_not_asked_of_haproxy(monkeypatch):
    monkeypatch.setenv("RAY_SERVE_ENABLE_HA_PROXY", "1")
    monkeypatch.setattr(deploy.importlib.util, "find_spec", lambda name: name)
    parser = argparse.ArgumentParser()
    deploy.add_arguments(parser)
    args = parser.parse_args(["--ray", "--certificate", "a.pem", "--private-key", "b.pem"])
    with pytest.raises(DeployError, match="speaks no https"):
        deploy.run(args)


def test_a_port_in_use_is_told_before_a_cluster_starts(monkeypatch, tmp_path):
    monkeypatch.setattr(deploy.importlib.util, "find_spec", lambda name: name)
    for name in EVERYWHERE:
        # Set by the command; what stands here is put back afterwards.
        monkeypatch.setenv(name, EVERYWHERE[name])
    keys = tmp_path / "keys"
    keys.write_text("ann rd-key-of-ann\n")
    parser = argparse.ArgumentParser()
    deploy.add_arguments(parser)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        args = parser.parse_args(["--ray", "--keys", str(keys), "--port", str(port)])
        with pytest.raises(DeployError, match=f"127.0.0.1:{port}"):
            deploy.run(args)


def test_what_is_left_of_haproxy_is_ended_and_nothing_else(tmp_path):
    wait = [sys.executable, "-c", "import time; time.sleep(60)"]
    left = subprocess.Popen([*wait, "-f", str(tmp_path / "own" / "haproxy.cfg")])
    other = subprocess.Popen([*wait, "-f", str(tmp_path / "own2" / "haproxy.cfg")])
    try:
        end_haproxy(tmp_path / "own")
        assert left.wait(60) != 0
        assert other.poll() is None
    finally:
        left.kill()
        other.kill()
        other.wait()
