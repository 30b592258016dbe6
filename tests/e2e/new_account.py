"""What a user does first in a new account: bring a model, and have a suggestion and an edit."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import psutil

from .client import REPOSITORY, Driver, inline, profile, redraft, status

TEXT = "def total(prices):\n    kept = prices\n    return \n"
FETCHED = b"GGUF of somebody's model"


def fetch(environment: dict[str, str], folder: Path) -> None:
    """``redraft models get``, of a file that lies here."""
    (folder / "brought.gguf").write_bytes(FETCHED)
    entry = {
        "name": "Brought-1B", "file": "brought.gguf", "licence": "apache-2.0",
        "repository": "owner/brought", "revision": "1" * 40, "path": "brought.gguf",
        "does": ["left"], "bytes": len(FETCHED),
        "sha256": hashlib.sha256(FETCHED).hexdigest(),
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps({"version": 1, "models": [entry]}))
    where = ["--manifest", str(folder / "manifest.json"), "--from", str(folder / "brought.gguf")]
    command = [*redraft(environment), "models", "get", "Brought-1B", *where]
    subprocess.run(command, env=environment, cwd=REPOSITORY, check=True, timeout=600)


def session(environment: dict[str, str], work: Path) -> list[int]:
    """A suggestion, an edit and an index; the processes that are there then."""
    driver = Driver(environment)
    driver.initialize(profile("vscode"), work)
    driver.wait_for_state("ready", timeout=400)
    uri = (work / "total.py").as_uri()
    driver.open(uri, TEXT)
    answer = driver.request("textDocument/inlineCompletion", inline(uri, 2, 11, 1), 120)
    assert answer["items"]
    selected = {"start": {"line": 0, "character": 0}, "end": {"line": 2, "character": 0}}
    edit = {"textDocument": {"uri": uri}, "range": selected, "instruction": "rename kept to held"}
    assert driver.request("redraft/edit", edit, 120)["hunks"]
    told = status(environment)
    assert told["workspaces"][0]["files"] == 1
    daemon = psutil.Process(told["pid"])
    processes = [daemon.pid, *(one.pid for one in daemon.children(recursive=True))]
    assert driver.close() == 0
    return processes
