"""A new account on a machine without a network: in a namespace of the kernel that has none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from small_model import choose_small_model

from .client import PYTHON, command
from .new_account import fetch, session

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

WITHOUT = ["unshare", "--map-root-user", "--net"]


def has_namespaces() -> bool:
    try:
        return subprocess.run([*WITHOUT, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not has_namespaces(), reason="this system gives no namespaces")
def test_all_but_fetching_works_without_a_network(
    new_home: Path, new_account: dict[str, str], tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexec {' '.join(WITHOUT)} '{sys.executable}' \"$@\"\n")
    python.chmod(0o755)
    offline = {**new_account, PYTHON: str(python)}
    reach = "import socket; socket.create_connection(('127.0.0.1', 9), 5)"
    reached = subprocess.run([python, "-c", reach], capture_output=True, text=True, check=False)
    assert "Network is unreachable" in reached.stderr, "not even this machine is reached"

    choose_small_model(new_home / ".config")
    fetch(offline, tmp_path)
    assert (new_home / ".cache/redraft/models/brought.gguf").is_file()
    session(offline, new_home / "work")
    refused = command(offline, "models", "get", "owner/other-GGUF")
    assert refused.returncode == 1
    assert "give the file with --from" in refused.stderr
    assert command(offline, "uninstall", "--yes").returncode == 0
