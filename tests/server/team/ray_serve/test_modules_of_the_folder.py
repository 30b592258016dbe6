"""A deployment runs no module of the folder that it is made in."""

from __future__ import annotations

import json
import os
import queue
import socket
import subprocess
import threading
import urllib.request
from pathlib import Path

import pytest
from deployed import KEY
from planted_modules import all_names, installed_command, names_run, plant
from small_model import SMALL_MODEL

from lsp_server.commands.cli.deploy import _working_in

START_S = 400


def test_it_works_in_an_empty_folder_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with _working_in(tmp_path / "empty"):
        assert Path.cwd() == tmp_path / "empty"
        assert os.listdir() == []
    assert Path.cwd() == tmp_path


@pytest.mark.long
@pytest.mark.timeout(600)
def test_replicas_ingress_and_controller_run_nothing_of_the_folder(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="ray is not installed: pip install 'redraft[ray]'")
    ran = tmp_path / "ran"
    folder = plant(tmp_path / "workspace", all_names(), ran)
    (folder / "keys.txt").write_text(f"first {KEY}\n")
    (folder / "keys.txt").chmod(0o600)
    command = [installed_command(tmp_path), "deploy", "--ray", "--keys", "keys.txt"]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    command += ["--port", str(port), "--replicas", "1", "--cpus", "0.5", "--threads", "1"]
    deployment = subprocess.Popen(
        [*command, "--model", str(SMALL_MODEL)], cwd=folder,
        env={**os.environ, "RAY_AUTH_MODE": "disabled"},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        lines: queue.Queue[bytes] = queue.Queue()
        assert deployment.stdout is not None
        read = deployment.stdout.readline
        threading.Thread(target=lambda: lines.put(read()), daemon=True).start()
        url = json.loads(lines.get(timeout=START_S))["url"]
        body = json.dumps({"model": "x", "prompt": "def f(a):", "max_tokens": 4}).encode()
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{url}/v1/completions", body, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert json.load(answer)["choices"]
    finally:
        deployment.terminate()
        deployment.wait(120)
    assert names_run(ran) == []
