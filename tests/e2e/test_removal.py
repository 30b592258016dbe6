"""``redraft uninstall`` after a real session: what Redraft wrote goes, what others wrote stays."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from python_environments import python_environment
from small_model import SMALL_MODEL, choose_small_model

from .client import PYTHON, REPOSITORY, Driver, inline, profile, redraft, status, wait_until

pytestmark = pytest.mark.timeout(600)

TEXT = "def total(prices):\n    kept = prices\n    return \n"
FETCHED = b"GGUF of somebody's model"
BASES = {".cache", ".config", ".local", ".local/share", ".local/state"}
"""Folders of every program of the user."""


@pytest.fixture
def home() -> Iterator[Path]:
    """A home in which the user has models and files, and no Redraft yet."""
    with tempfile.TemporaryDirectory(prefix="redraft-home-") as folder:
        home = Path(folder, "home")
        for name in (
            ".cache/huggingface/hub/models--some--model/snapshots/1/model.gguf",
            ".cache/pip/wheel",
            ".ollama/models/manifests/registry/model",
            ".config/editor/settings.json",
            "work/total.py",
        ):
            file = home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(TEXT)
        (Path(folder) / "temporary").mkdir()
        yield home


@pytest.fixture
def environment(home: Path) -> dict[str, str]:
    """As in a new account: a home, and nothing that says where anything lies."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("REDRAFT_", "XDG_"))
    }
    temporary = str(home.parent / "temporary")
    return {**kept, "HOME": str(home), "TMPDIR": temporary, "OMP_NUM_THREADS": "1"}


def listing(folder: Path) -> dict[str, str]:
    """Every file below a folder with its hash, and every folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file() or path.is_symlink()
        else "folder"
        for path in folder.rglob("*")
        if not path.is_socket()
    }


def uninstall(
    environment: dict[str, str], *options: str, answer: str | None = None
) -> subprocess.CompletedProcess[str]:
    terminal = {} if answer is None else {"REDRAFT_ASSUME_TERMINAL": "1"}
    return subprocess.run(
        [sys.executable, "-m", "lsp_server", "uninstall", *options],
        env={**environment, **terminal}, cwd=REPOSITORY, input=answer or "", text=True,
        capture_output=True, timeout=120, check=False,
    )  # fmt: skip


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
    subprocess.run(command, env=environment, cwd=REPOSITORY, check=True, timeout=120)


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


def runs(pid: int) -> bool:
    """Whether a process does anything any more: nobody may have asked how it ended."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_nothing_of_ours_is_left_and_nothing_of_others_goes(
    home: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    before = listing(home)
    choose_small_model(home / ".config", home / ".cache")
    fetch(environment, tmp_path)
    # Another interpreter is another build: its daemon is ended, too.
    other = {**environment, PYTHON: str(python_environment(tmp_path / "python"))}
    processes = session(other, home / "work")
    assert len(processes) >= 3

    during = listing(home)
    shown = uninstall(environment, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert f"process {processes[0]}" in shown.stdout
    for kind in ("models: ", "indexes: ", "logs: ", "settings: ", "caches and measurements: "):
        assert kind in shown.stdout
    assert "brought.gguf" in shown.stdout
    assert "huggingface" not in shown.stdout
    refused = uninstall(environment)
    assert (refused.returncode, "--yes" in refused.stderr) == (1, True)
    assert uninstall(environment, answer="n\n").returncode == 0
    assert set(listing(home)) >= set(during)
    assert all(map(runs, processes))

    done = uninstall(environment, answer="y\n")
    assert done.returncode == 0, done.stderr
    left = listing(home)
    assert {name: left[name] for name in left if name not in BASES - set(before)} == before
    assert list((home.parent / "temporary").iterdir()) == []
    wait_until(lambda: not any(map(runs, processes)))
    assert (SMALL_MODEL / "model.safetensors").is_file()
    assert "keeps nothing" in uninstall(environment, "--yes").stdout
    assert set(listing(home)) == set(left)


def test_models_stay_where_the_user_wants_them_or_brought_them(
    home: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    models = home / ".cache/redraft/models"
    fetch(environment, tmp_path)
    (models / "mine.gguf").write_bytes(b"mine")
    kept = uninstall(environment, "--yes", "--keep-models")
    assert kept.returncode == 0, kept.stderr
    names = {"brought.gguf", "mine.gguf", "fetched.json"}
    assert {path.name for path in models.iterdir()} >= names
    removed = uninstall(environment, "--yes")
    assert "mine.gguf: not fetched by Redraft" in removed.stdout
    assert [path.name for path in models.iterdir()] == ["mine.gguf"]
    fetch(environment, tmp_path)
    (models / "brought.gguf").write_bytes(b"another")
    assert "changed since it was fetched" in uninstall(environment, "--yes").stdout
    assert {path.name for path in models.iterdir()} == {"mine.gguf", "brought.gguf"}


def test_of_folders_that_the_user_named_only_ours_goes(
    home: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    data, logs, disk = tmp_path / "data", tmp_path / "logs", tmp_path / "disk"
    for file in (data / "thesis.txt", logs / "syslog.log", data / "workspaces/a/manifest"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(TEXT)
    (logs / "daemon.log.1").write_text(TEXT)
    # The cache lies on another disk, and a link in it leads elsewhere.
    (disk / "kv").mkdir(parents=True)
    (disk / "kv" / "1").write_text(TEXT)
    (disk / "thesis").symlink_to(data)
    (home / ".cache/redraft").symlink_to(disk)
    named = {**environment, "REDRAFT_DATA": str(data), "REDRAFT_LOG_DIR": str(logs)}
    done = uninstall(named, "--yes")
    assert done.returncode == 0, done.stderr
    assert sorted(listing(data)) == ["thesis.txt"]
    assert sorted(listing(logs)) == ["syslog.log"]
    assert sorted(listing(disk)) == []
    assert not (home / ".cache/redraft").is_symlink()
